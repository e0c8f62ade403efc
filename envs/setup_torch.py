"""Which build of torch pip would take, and what it costs to download.

The engine runs on the CPU, and torch 2.13.0 is known to most indexes as a CUDA build:
it works too, but brings gigabytes that nobody asked for. So pip is asked first, without
downloading, and the user is told before the download, with the way out (TORCH_INDEX).
"""

from __future__ import annotations

import json
import os
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

from setup_pip import Pip, normal

CUDA_PREFIXES = ("nvidia-", "cuda-", "triton", "pytorch-triton")
MB = 10**6


@dataclass(frozen=True)
class TorchBuild:
    """What pip would install for torch."""

    version: str
    cuda: bool
    urls: tuple[str, ...]  # of torch and its CUDA packages, as far as the report names them


def index_arguments() -> list[str]:
    """Return pip's arguments for the index that TORCH_INDEX names, if it names one."""
    index = os.environ.get("TORCH_INDEX", "").strip()
    return ["--index-url", index] if index else []


def ask(pip: Pip, requirement: str) -> TorchBuild:
    """Ask pip, without downloading; a second time with dependencies when it is a CUDA build."""
    build = _ask(pip, requirement, "--no-deps")
    return _ask(pip, requirement) if build.cuda else build


def _ask(pip: Pip, requirement: str, *more: str) -> TorchBuild:
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        # fast-deps reads a wheel's metadata by range requests where the index has no
        # metadata file of its own; else pip would download 500 MB for an answer.
        arguments = ["--dry-run", "--ignore-installed", "--use-feature=fast-deps", *more]
        arguments += ["--report", str(report), *index_arguments(), requirement]
        pip.install(arguments)
        return read_report(json.loads(report.read_text(encoding="utf-8")))


def read_report(report: dict) -> TorchBuild:
    """Return the build that a pip installation report describes.

    A CUDA build asks for CUDA packages, whatever its version says: the one on most
    indexes calls itself plainly 2.13.0.
    """
    chosen = {normal(item["metadata"]["name"]): item for item in report["install"]}
    torch = chosen["torch"]["metadata"]
    asked = [normal(line.split()[0]) for line in torch.get("requires_dist", [])]
    cuda = any(name.startswith(CUDA_PREFIXES) for name in asked)
    urls = [
        item["download_info"]["url"]
        for name, item in chosen.items()
        if name == "torch" or name.startswith(CUDA_PREFIXES)
    ]
    return TorchBuild(torch["version"], cuda, tuple(urls))


def download_bytes(build: TorchBuild) -> int | None:
    """Return the size of the build's files, or None when one of them cannot be learned."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        sizes = list(pool.map(_size, build.urls))
    return None if None in sizes else sum(sizes)


def notice(build: TorchBuild, size: int | None) -> str:
    """Return what the user should know before a CUDA build is downloaded."""
    known = "of unknown size" if size is None else f"of {size / MB:,.0f} MB"
    return (
        f"pip takes a CUDA build of torch {build.version}: a download {known}, "
        f"{len(build.urls)} packages. It works here too. For a CPU build (about 200 MB) stop "
        "now and name an index that has one: TORCH_INDEX=<URL> make setup  (PyTorch's "
        "install page names it under Compute Platform: CPU)"
    )


def _size(url: str) -> int | None:
    parts = urlsplit(url)
    try:
        if parts.scheme == "file":
            return Path(unquote(parts.path)).stat().st_size
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=15) as answer:
            return int(answer.headers["Content-Length"])
    except (OSError, TypeError, ValueError):
        return None
