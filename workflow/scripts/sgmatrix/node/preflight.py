"""Before a launch: is the node free for it? Each "no" is of the environment and names the cause.

Standard library only: the warden asks this when it holds the lease.
Not here: the GPUs, `node.gpus`.
"""

from __future__ import annotations

import re
import shutil
import socket
from pathlib import Path

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.node import proc


def free_memory_mb() -> int:
    """Return the memory that the kernel says is available to a new program, in MiB."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0


def check_memory(needed_mb: int) -> None:
    """Refuse to start a server that the machine's memory cannot hold."""
    free = free_memory_mb()
    if free < needed_mb:
        raise SgmatrixError(
            "gpu_busy",
            f"{free} MiB of memory free on this machine, the engine needs {needed_mb}",
            fix="end what uses it, or lower engines.<name>.min_free_memory_mb",
        )


def check_disk(place: Path, needed_mib: int) -> None:
    """Refuse to begin where the records of a launch would not fit.

    Args:
        place: folder that is to be made; the file system of its nearest parent is looked at.
        needed_mib: MiB that are to be free.
    """
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free // 2**20
    if free < needed_mib:
        raise SgmatrixError(
            "interrupted",
            f"{free} MiB free on the disk of {place}, node.min_free_disk_mib = {needed_mib}",
            fix="make room there, or run in another place with --directory",
        )


def check_port(port: int) -> None:
    """Refuse a port that somebody listens on; its owner is named and left alone."""
    inodes = proc.listening_inodes(port)
    if not inodes:
        return
    pids = sorted(proc.owners(inodes))
    who = f"pid {pids[0]}: {proc.command_of(pids[0])}" if pids else "another user's process"
    raise SgmatrixError(
        "port_in_use",
        f"port {port} is taken by {who}",
        fix="end that process, or set server.port to auto or to a free port",
    )


def port_holders(line: str) -> str:
    """Return who listens on the ports that a log line names, as text to add to it."""
    ports = {int(word) for word in re.findall(r"(?<!\d)\d{4,5}(?!\d)", line)}
    found = [
        f"port {port} is held by pid {pid}: {proc.command_of(pid)}"
        for port in sorted(ports)
        for pid in sorted(proc.owners(proc.listening_inodes(port)))
    ]
    return "".join(f"; {text}" for text in found)


def free_port() -> int:
    """Return a port that is free now; readiness proves later that our server got it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
