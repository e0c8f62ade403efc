"""What machine this is: kernel, processor, memory, and GPUs with driver and power limit."""

from __future__ import annotations

import csv
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

_SMI_TIMEOUT_S = 20
_GPU_FIELDS = ("index", "uuid", "name", "driver_version", "power.limit", "memory.total")


def _processor() -> str | None:
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
    command = ["nvidia-smi", f"--query-gpu={','.join(_GPU_FIELDS)}", "--format=csv,noheader"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=_SMI_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    gpus = []
    for row in csv.reader(answer.stdout.splitlines(), skipinitialspace=True):
        if len(row) == len(_GPU_FIELDS):
            values = [None if text.startswith("[") or "ERR" in text else text for text in row]
            gpus.append(dict(zip(_GPU_FIELDS, values, strict=True)))
    return gpus


def node_facts(device: str) -> dict[str, Any]:
    """Return the facts of this machine.

    Args:
        device: `cuda` looks at the GPUs, `cpu` does not.
    """
    return {
        "hostname": platform.node(),
        "kernel": platform.release(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": _memory_mb(),
        "gpus": gpu_facts() if device == "cuda" else [],
    }
