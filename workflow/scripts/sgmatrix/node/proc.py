"""Processes by identity, not by number: a pid with its start time, trees, and listening ports.

Linux only, standard library only: the warden imports this and has to start fast.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

_LISTEN = "0A"
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent ends; for `preexec_fn`.

    Only where no other thread runs yet.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


_set_aside: set[int] = set()


def stat_fields(pid: int) -> list[str] | None:
    """Return the fields of /proc/<pid>/stat from `state` on; None when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None when gone or a zombie."""
    fields = stat_fields(pid)
    return None if fields is None or fields[0] in "ZX" else int(fields[19])


@dataclass(frozen=True)
class Identity:
    """A process that cannot be mistaken for a later one of the same number."""

    pid: int
    ticks: int
    boot: str

    def alive(self) -> bool:
        return self.boot == boot_id() and start_ticks(self.pid) == self.ticks

    def record(self) -> dict[str, int | str]:
        return asdict(self)


def boot_id() -> str:
    """Return the id of this boot of this machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> Identity | None:
    """Return the identity of a living process, None when it is gone."""
    ticks = start_ticks(pid)
    return None if ticks is None else Identity(pid, ticks, boot_id())


def open_pidfd(identity: Identity) -> int | None:
    """Return a descriptor that becomes readable when that process ends; None when it is gone."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except OSError:
        return None
    if not identity.alive():  # the number may have been given to another one meanwhile
        os.close(descriptor)
        return None
    return descriptor


def wait_gone(identity: Identity, timeout_s: float) -> bool:
    """Wait until that process has ended; False when it has not within the time."""
    descriptor = open_pidfd(identity)
    if descriptor is None:
        return True
    try:
        return bool(select.select([descriptor], [], [], timeout_s)[0])
    finally:
        os.close(descriptor)


def set_aside(pid: int) -> None:
    """Leave a child of ours out of every tree: it is no part of the server.

    A helper of ours, or one that not even SIGKILL ends (state D): then nobody waits for it.
    """
    _set_aside.add(pid)


def children(pid: int) -> list[int]:
    """Return the direct children of a process, without those that were set aside."""
    found: list[int] = []
    with contextlib.suppress(OSError):  # it may end while we look; pathlib's glob would raise too
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{pid}/task/{task}/children").read_text()
                found += [int(child) for child in text.split()]
    return [child for child in found if child not in _set_aside]


def tree(pid: int) -> list[int]:
    """Return all descendants of a process, deepest first."""
    return [inner for child in children(pid) for inner in (*tree(child), child)]


def was_stopped(child: int) -> bool:
    """Tell whether a child was stopped by a signal since the last call, even if it runs again."""
    try:
        seen = os.waitid(os.P_PID, child, os.WSTOPPED | os.WCONTINUED | os.WNOHANG)
    except ChildProcessError:
        return False
    return seen is not None


def stopped(pids: Iterable[int]) -> list[int]:
    """Return which processes are stopped now, by a signal or by a debugger."""
    return [pid for pid in pids if (fields := stat_fields(pid)) and fields[0] in "Tt"]


def reap(statuses: dict[int, int] | None = None) -> None:
    """Collect every child that has ended; keep its exit code as `subprocess` counts it."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            _set_aside.discard(pid)
            if statuses is not None:
                statuses[pid] = os.waitstatus_to_exitcode(status)


def end_tree(grace_s: float, statuses: dict[int, int], kill_s: float = 10.0) -> str:
    """End all descendants of this process: SIGTERM to its children, grace, SIGKILL to all.

    The caller must be a sub-reaper. A descendant that changes its session or loses its parent
    then becomes its child, and gets its own SIGTERM; the ranks of a server are left to the
    server, which ends them in order.

    Args:
        grace_s: from SIGTERM to SIGKILL.
        statuses: receives the exit code of every child that was collected.
        kill_s: how long to wait for the kernel after SIGKILL.

    Returns:
        How it ended: `none` there was no child, `term`, `kill`, or `survivors`.
    """
    me = os.getpid()
    reap(statuses)
    if not children(me):
        return "none"
    for how, limit_s in (("term", grace_s), ("kill", kill_s)):
        deadline = time.monotonic() + limit_s
        told: set[int] = set()
        while True:
            for pid in set(children(me) if how == "term" else tree(me)) - told:
                told.add(pid)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGTERM if how == "term" else signal.SIGKILL)
            reap(statuses)
            if not children(me):
                return how
            if time.monotonic() >= deadline:
                break
            time.sleep(0.005)
    return "survivors"


@dataclass(frozen=True)
class CpuUse:
    """What a process has taken of the machine's CPUs since it began."""

    cpu_s: float
    """User and system time of all its threads."""
    delay_s: float
    """Time that its living threads were ready to run and waited for a CPU."""


def cpu_use(pid: int) -> CpuUse | None:
    """Return what a living process has taken; None when it is gone, or the kernel does not say.

    The delay is the second number of `schedstat`, in nanoseconds.
    """
    fields = stat_fields(pid)
    if fields is None or fields[0] in "ZX":
        return None
    delay_ns = 0
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                delay_ns += int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    ticks = int(fields[11]) + int(fields[12])
    return CpuUse(ticks / os.sysconf("SC_CLK_TCK"), delay_ns / 1e9)


def listening_inodes(port: int) -> set[str]:
    """Return the socket inodes that listen on a TCP port of this machine."""
    found: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN and int(fields[1].rsplit(":", 1)[1], 16) == port:
                    found.add(fields[9])
    return found


def owners(inodes: set[str], pids: Iterable[int] | None = None) -> set[int]:
    """Return which processes hold one of those sockets; all that we may look into by default."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    if pids is None:
        pids = [int(entry) for entry in os.listdir("/proc") if entry.isdecimal()]
    found: set[int] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if str(Path(entry.path).readlink()) in wanted:
                        found.add(pid)
    return found


def command_of(pid: int) -> str:
    """Return a process's command line, shortened, for messages."""
    try:
        text = (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except OSError:
        return "?"
    return text.strip()[:120] or "?"


def engine_workers(pid: int) -> dict[int, str]:
    """Return the schedulers and the detokenizer of an engine, by pid and their name.

    SGLang gives them names of their own; a helper process that ends is no crash.
    """
    names = {child: command_of(child) for child in tree(pid)}
    return {child: name for child, name in names.items() if name.startswith("sglang::")}
