"""Servers that outlived their warden: found by the token in their environment, named, ended.

A warden ends its server's whole tree. Only one that was killed itself can leave something
behind: a descendant that had moved into a session of its own. Such a process still carries the
token of its server, and the token tells which warden kept it; it is ours to end when it is of
our user and that warden is gone. Nothing is ever recognised by its name or its command line.
Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from sgmatrix.core.environment import TOKEN_VARIABLE
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.node import proc

_MARK = f"{TOKEN_VARIABLE}=".encode()


def token_of(secret: str, warden: proc.Identity) -> str:
    """Return the token of a server: what is random in it, then who keeps the server, and where.

    A number is a process only within its namespace: another container's warden is none of ours.
    """
    return f"{secret}.{warden.pid}.{warden.ticks}.{warden.boot}.{_namespace()}"


def _namespace() -> str:
    """Return which numbering of processes this process lives in, as digits."""
    return "".join(char for char in str(Path("/proc/self/ns/pid").readlink()) if char.isdecimal())


def _keeper(environ: bytes) -> proc.Identity | None:
    """Return the warden that an environment names; None where it carries no token of ours."""
    for entry in environ.split(b"\0"):
        if entry.startswith(_MARK):
            parts = entry.removeprefix(_MARK).decode(errors="replace").split(".")
            numbers = len(parts) == 5 and parts[1].isdecimal() and parts[2].isdecimal()
            if numbers and parts[4] == _namespace():
                return proc.Identity(int(parts[1]), int(parts[2]), parts[3])
    return None


@dataclass(frozen=True)
class Leftover:
    """A process of a server whose warden is gone."""

    process: proc.Identity
    command: str

    def __str__(self) -> str:
        return f"pid {self.process.pid}: {self.command}"


def find_leftovers() -> list[Leftover]:
    """Return the processes of this user that a warden which is gone has left behind."""
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError):  # it may end while we look
            if entry.stat().st_uid != os.getuid():
                continue
            keeper = _keeper(Path(entry.path, "environ").read_bytes())
            process = proc.identify(int(entry.name))
            if keeper is not None and process is not None and not keeper.alive():
                found.append(Leftover(process, proc.command_of(process.pid)))
    return found


def end_leftovers(grace_s: float, kill_s: float = 10.0) -> list[str]:
    """End what a killed warden has left behind: SIGTERM, grace, SIGKILL.

    Args:
        grace_s: from SIGTERM to SIGKILL.
        kill_s: how long to wait for the kernel after SIGKILL.

    Returns:
        What was ended, one text per process.

    Raises:
        SgmatrixError: `leftover_process` naming what could not be ended.
    """
    ended: list[str] = []
    for number, limit_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, kill_s)):
        left = find_leftovers()
        if not left:
            return ended
        ended += [text for one in left if (text := str(one)) not in ended]
        _signal_and_wait(left, number, limit_s)
    if left := find_leftovers():
        raise SgmatrixError(
            "leftover_process",
            f"a server of an earlier run does not end: {'; '.join(map(str, left))}",
            fix="end it by hand, or restart the machine",
        )
    return ended


def _signal_and_wait(processes: list[Leftover], number: int, limit_s: float) -> None:
    waiting = []
    for one in processes:
        descriptor = proc.open_pidfd(one.process)
        if descriptor is None:
            continue
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(descriptor, number)
        waiting.append(descriptor)
    deadline = time.monotonic() + limit_s
    try:
        for descriptor in waiting:
            select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
    finally:
        for descriptor in waiting:
            os.close(descriptor)
