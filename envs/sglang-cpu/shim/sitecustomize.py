"""Let the unmodified SGLang wheel start on a CPU-only Linux machine.

Put this folder first on PYTHONPATH of the server and of the benchmark client; Python
imports `sitecustomize` by itself at every start. Two packages need something done just
before they are first imported, and nothing happens in a process that imports neither:

torchvision  is mostly built for CUDA; beside a CPU build of torch its C++ operators do not
             load and its Python code stops with "operator torchvision::nms does not exist".
             Two operators are declared beforehand then, without an implementation.
sglang       imports triton at the top of its modules. Where triton is not installed,
             SGLang's own Apple-silicon stubs take its place. `torch.cpu` also gets two
             functions that SGLang's expert-distribution recorder calls on every device.
             Where torch is a CUDA build, it passes for a CPU build that sees no GPU: else
             two ranks on the CPU try NCCL, "Expected a cuda device, but got: cpu".
             torch.compile is off unless asked for: a tp2 server would compile one function,
             which needs g++, and fails in a folder whose path holds a space.

Written for sglang 0.5.23, torch 2.13.0, torchvision 0.28.0: look again when a pin moves.
It shadows the interpreter's own sitecustomize, if there is one (Debian's only reports crashes).
"""

import importlib.util
import os
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from types import SimpleNamespace


class BeforeImport:
    """A meta-path finder that finds nothing, but acts once before `package` is imported."""

    def __init__(self, package: str, action: Callable[[], None]) -> None:
        self.package = package
        self.action: Callable[[], None] | None = action

    def find_spec(self, fullname: str, *_: object) -> None:
        """Run the action on the first look for the package, and leave the finding to others."""
        if fullname == self.package and self.action is not None:
            # Cleared first: the action may import the package's name again.
            action, self.action = self.action, None
            action()


def declare_torchvision_operators() -> None:
    """Declare the two operators that torchvision's Python code looks up at import.

    Only where its own C++ operators do not load: PyTorch ends the process (abort, no
    exception) when the same operator is declared a second time.
    """
    import torch  # here, since it takes seconds

    found = PathFinder.find_spec("torchvision")
    if found is None or not found.submodule_search_locations:
        return  # not installed: the import that follows says so
    try:
        torch.ops.load_library(Path(found.submodule_search_locations[0], "_C.so"))
    except OSError:
        signature = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", signature)


def prepare_sglang() -> None:
    """Make torch look the same for a CPU and a CUDA build; stub triton where it is missing."""
    # In the environment, so that the scheduler processes inherit it.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if "--enable-torch-compile" not in sys.argv:
        os.environ.setdefault("TORCH_COMPILE_DISABLE", "1")
    import torch  # here, since it takes seconds

    torch.version.cuda = None
    for name, answer in (("is_current_stream_capturing", False), ("empty_cache", None)):
        if not hasattr(torch.cpu, name):
            setattr(torch.cpu, name, lambda answer=answer: answer)
    if importlib.util.find_spec("triton") is None:
        install_sglang_stubs()


def install_sglang_stubs() -> None:
    """Run `sglang/_platform_stubs.py`, which only acts on a Mac, as if this were one.

    The file is loaded by its path, because `import sglang._platform_stubs` would first
    import the package that needs the stubs.
    """
    import torch

    candidates = (Path(folder, "sglang", "_platform_stubs.py") for folder in sys.path)
    source = next((path for path in candidates if path.is_file()), None)
    if source is None:
        message = "shim: sglang/_platform_stubs.py is not installed; the shim fits sglang 0.5.23"
        raise ImportError(message)
    spec = importlib.util.spec_from_file_location("_sglang_platform_stubs", source)
    stubs = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = stubs
    spec.loader.exec_module(stubs)

    stubs.sys = SimpleNamespace(platform="darwin", modules=sys.modules, meta_path=sys.meta_path)
    stubs.platform = SimpleNamespace(machine=lambda: "arm64")
    stubs._patch_non_blocking = lambda: None  # noqa: SLF001 - would change torch for MPS
    mps_is_available = torch.backends.mps.is_available
    torch.backends.mps.is_available = lambda: True
    try:
        stubs.install_platform_stubs()
    finally:
        torch.backends.mps.is_available = mps_is_available


sys.meta_path[:0] = [
    BeforeImport("sglang", prepare_sglang),
    BeforeImport("torchvision", declare_torchvision_operators),
]
