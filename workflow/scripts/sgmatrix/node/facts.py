"""What machine this is: kernel, processor, memory, and GPUs with driver and power limit."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.node import gpus, smi

_GPU_FIELDS = ("index", "uuid", "name", "driver_version", "power.limit", "memory.total")


def processor() -> str | None:
    """Return the name of the processor; None where the kernel gives none."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return None


def _memory_mb() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20


def gpu_facts() -> list[dict[str, str | None]] | None:
    """Return what nvidia-smi says of each GPU; a value it does not know is None.

    None in place of the list where nvidia-smi is absent, fails, or does not answer in time.
    """
    try:
        rows, _lost = gpus.query_gpus(_GPU_FIELDS)
    except SgmatrixError:
        return None
    return [{key: smi.known(text) for key, text in row.items()} for row in rows] or None


def node_facts(device: str) -> dict[str, Any]:
    """Return the facts of this machine.

    Args:
        device: `cuda` looks at the GPUs, `cpu` does not.
    """
    return {
        "hostname": platform.node(),
        "kernel": platform.release(),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": _memory_mb(),
        "gpus": gpu_facts() if device == "cuda" else [],
    }
