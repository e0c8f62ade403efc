"""Are both cores right on this GPU? `python device/check.py [FIRST]`.

It takes some minutes, most of them to compile; FIRST is the line to begin with, from 0.

It needs torch, triton and the package.

Each line is one core, router, k0 and dtype over the batch sizes 1 to 256, with spread, tied
and extreme logits, padding rows and shuffled columns, against the list-and-set reference.
It exits with 1 at the first untruth: end the whole run then. Nothing else shows a kernel that
is wrong on one GPU, neither the interpreter nor a healthy server.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from sglang_oea.check import cases_for, check_cases, sizes_up_to
from sglang_oea.cores import core_for
from sglang_oea.router import Router
from sglang_oea.settings import Settings

DEVICE = "cuda"
SIZES = sizes_up_to(256)
GENERAL = Settings(4, k_max=6, p=0.5, max_rank=24, core="eager")


def routers(experts: int) -> Iterator[Router]:
    """Yield the routers of models that matter: Qwen3, GLM-5, DeepSeek-V3, and odd ones."""
    yield Router(experts, 8)
    yield Router(experts, 8, "sigmoid", biased=True)
    yield Router(experts, 8, "sigmoid", biased=True, groups=8, top_groups=4)
    yield Router(experts, 8, "sigmoid", biased=True, groups=8, top_groups=4, shared=1)
    yield Router(experts, 8, "softmax", groups=8, top_groups=3, renormalize=False)


def todo() -> Iterator[tuple[Router, torch.dtype, list[tuple[str, Settings, str]]]]:
    """Yield router, dtype and the cores, settings and fills that share their cases."""
    for experts in (128, 256):
        for router in routers(experts):
            for dtype in (torch.bfloat16, torch.float32):
                main_dtype = dtype == torch.bfloat16
                lines = [
                    ("triton", Settings(k0, core="triton"), "repeat")
                    for k0 in (range(1, 9) if main_dtype else (1, 4, 8))
                ]
                lines += [
                    ("eager", Settings(k0, core="eager"), "repeat")
                    for k0 in ((1, 4, 8) if main_dtype else (4,))
                ]
                for core in ("triton", "eager"):
                    lines += [(core, Settings(2, core=core), fill) for fill in ("mask", "distinct")]
                yield router, dtype, lines
            yield router, torch.bfloat16, [("eager", GENERAL, "repeat")]
    for router in (Router(60, 4), Router(384, 6, "sigmoid", biased=True), Router(512, 10)):
        yield router, torch.bfloat16, [("triton", Settings(2, core="triton"), "repeat")]


def main() -> int:
    """Print the table; return 0, 1 at an untruth, or 2 without a GPU."""
    if not torch.cuda.is_available():
        print("no CUDA device: this check says nothing elsewhere", file=sys.stderr)
        return 2
    import triton

    name = torch.cuda.get_device_name()
    print(f"{name}, torch {torch.__version__}, triton {triton.__version__}, batches {SIZES}")
    print(f"{'core':7}{'E':>5}{'k':>3}{'k0':>4}  {'router':34}{'fill':9}{'dtype':9}cases  error  s")
    begun, cases, line = time.monotonic(), 0, -1
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    for router, dtype, lines in todo():
        shared = list(cases_for(router, lines[0][1], SIZES, dtype, DEVICE))
        for core, settings, fill in lines:
            line += 1
            if line < first:
                continue
            since = time.monotonic()
            done = check_cases(core_for(router, settings, DEVICE, fill), shared)
            cases += done.cases
            kind = router.kind + ("" if router.renormalize else ", raw")
            kind += f", {router.shared} shared" if router.shared else ""
            print(
                f"{core:7}{router.experts:5}{router.top_k:3}{settings.k0:4}  {kind:34}{fill:9}"
                f"{str(dtype).removeprefix('torch.'):9}{done.cases:5}"
                f"{done.max_weight_error:8.0e}{time.monotonic() - since:5.1f}",
                flush=True,
            )
            if not done.ok:
                print(f"UNTRUE: {done.problem}", flush=True)
                return 1
    print(f"true: {cases} cases in {time.monotonic() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
