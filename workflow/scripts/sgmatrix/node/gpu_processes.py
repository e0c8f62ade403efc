"""The processes that compute on GPUs, as nvidia-smi and /proc tell them together.

Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from sgmatrix.core.redact import redact
from sgmatrix.node import proc
from sgmatrix.node.smi import known, run_smi, whole

_PROCESS_FIELDS = ("pid", "gpu_uuid", "used_memory", "process_name")  # a name may hold commas


@dataclass(frozen=True)
class GpuProcess:
    """A process that computes on a GPU."""

    pid: int | None
    gpu_uuid: str | None
    used_mib: int | None
    name: str
    user: str
    """`?` when the process cannot be seen from here, as in another container."""

    def __str__(self) -> str:
        pid = "?" if self.pid is None else self.pid
        used = "memory unknown" if self.used_mib is None else f"{self.used_mib} MiB"
        return f"pid {pid} of user {self.user}, {used}: {self.name}"


def compute_processes(uuids: Collection[str], timeout_s: float | None = None) -> list[GpuProcess]:
    """Return the processes that compute on these GPUs; one that has ended does not count.

    A process of which nvidia-smi does not say on which GPU it is counts for all of them.

    Raises:
        SgmatrixError: `gpu_busy` when nvidia-smi is absent, does not answer in time, or fails.
    """
    query = f"--query-compute-apps={','.join(_PROCESS_FIELDS)}"
    text = run_smi([query, "--format=csv,noheader"], timeout_s, lost_ok=True)
    found = []
    for line in text.splitlines():
        row = [part.strip() for part in line.split(",", len(_PROCESS_FIELDS) - 1)]
        if len(row) < len(_PROCESS_FIELDS) or row[0] == _PROCESS_FIELDS[0]:
            continue
        pid, uuid = whole(row[0]), known(row[1])
        if (uuid is None or uuid in uuids) and not (pid and _has_ended(pid)):
            words = "?" if pid is None else proc.command_of(pid)
            name = known(row[3]) or "?" if words == "?" else " ".join(redact(words.split()))
            found.append(GpuProcess(pid, uuid, whole(row[2]), name, _user_of(pid)))
    return found


def _has_ended(pid: int) -> bool:
    """Tell whether it is a zombie: all its threads, as the first may end before the others."""
    states = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):  # a thread may end while we look
                text = Path(f"/proc/{pid}/task/{task}/stat").read_text()
                states.append(text.rsplit(")", 1)[1].split()[0])
    return bool(states) and set(states) <= {"Z", "X"}


def _user_of(pid: int | None) -> str:
    try:
        uid = Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return "?"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
