"""What wakes a warden: its owner, the jobs that use its server, messages, signals, the server.

Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from pathlib import Path
from typing import Any

from sgmatrix.node import proc


class Closing(Exception):
    """The server is to be ended; `args` = (reason class or None when asked to, detail)."""


class Wakeups:
    """Everything that a warden waits for, by descriptors that the kernel makes readable."""

    def __init__(self, control: Path, owner: dict[str, Any]) -> None:
        os.mkfifo(control, 0o600)
        self._control = os.open(control, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._owner = _watch(owner)
        self._users: dict[int, int] = {}
        """Descriptor of each job that uses the server -> its pid."""
        self._server: int | None = None
        self._workers: dict[int, str] = {}
        """Descriptor of each worker of the server -> what it is."""
        self.idle_since = time.monotonic()
        self.signals: list[int] = []

    def wake(self) -> None:
        """End a wait, from a signal handler or another thread."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b"!")

    def use(self, record: dict[str, Any]) -> None:
        """Count a job as a user of the server.

        Raises:
            Closing: when it has ended already.
        """
        descriptor = _watch(record)
        if descriptor is None:
            raise Closing(
                "interrupted", f"the job that was to use the server ended, pid {record['pid']}"
            )
        self._users[descriptor] = record["pid"]

    def watch_server(self, pid: int) -> None:
        """Notice the end of the server."""
        self._server = os.pidfd_open(pid)

    def watch_workers(self, workers: dict[int, str]) -> None:
        """Notice the end of workers of the server, by pid and what each one is."""
        for pid, what in workers.items():
            with contextlib.suppress(OSError):
                self._workers[os.pidfd_open(pid)] = f"{what}, pid {pid}"

    def idle_s(self) -> float:
        """Return for how long no job has used the server."""
        return 0.0 if self._users else time.monotonic() - self.idle_since

    def wait(self, timeout_s: float) -> None:
        """Wait for the next thing to happen.

        The server's own death comes first: a job that ended because of it is no idle time.

        Raises:
            Closing: when what happened ends the server.
        """
        watched = [self._control, self._wake_read, *self._users, *self._workers]
        watched += [fd for fd in (self._owner, self._server) if fd is not None]
        happened = set(select.select(watched, [], [], timeout_s)[0])
        if self._server in happened:
            raise Closing("died", "")
        if self._owner is None or self._owner in happened:
            raise Closing("interrupted", "the Snakemake process is gone")
        if self.signals:
            raise Closing("interrupted", f"signal {self.signals[0]}")
        # before a message lets go of a descriptor, whose number the next job may then get
        ended = {fd: self._users[fd] for fd in happened & self._users.keys()}
        if self._control in happened:
            self._obey()
        if self._wake_read in happened:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)
        for descriptor in happened & self._workers.keys():
            raise Closing("worker_died", self._workers[descriptor])
        for descriptor, pid in ended.items():
            if self._users.get(descriptor) == pid:  # it did not say that it had finished
                raise Closing("interrupted", f"the job that used the server ended, pid {pid}")

    def _obey(self) -> None:
        for line in os.read(self._control, 65536).decode(errors="replace").splitlines():
            try:
                message = json.loads(line)
                ask = message["ask"]
            except (ValueError, KeyError, TypeError):
                continue  # not from us; a job that cannot be heard is missed soon enough
            if ask == "stop":
                raise Closing(None, str(message.get("why")))
            if ask == "use":
                self.use(message["job"])
            if ask == "release":
                self._release(message["job"]["pid"])

    def _release(self, pid: int) -> None:
        for descriptor in [fd for fd, user in self._users.items() if user == pid]:
            os.close(descriptor)
            del self._users[descriptor]
        self.idle_since = time.monotonic()

    def server_ends(self, timeout_s: float) -> bool:
        """Tell whether the server ends within the time, whatever else happens."""
        return self._server is not None and bool(
            select.select([self._server], [], [], timeout_s)[0]
        )


def _watch(record: dict[str, Any]) -> int | None:
    return proc.open_pidfd(proc.Identity(**record))
