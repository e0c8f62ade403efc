"""What the jobs use: start a warden, use its server, ask it to stop, read how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.reasons import is_environment
from sgmatrix.node import proc

_CLOSING_S = 120.0
_LISTEN_S = 1.0
_PACKAGE_PARENT = Path(__file__).resolve().parents[2]


def start_warden(spec_path: Path) -> subprocess.Popen[str]:
    """Start a warden in a session of its own; its stdout carries what it has to tell."""
    environment = {**os.environ, "PYTHONPATH": str(_PACKAGE_PARENT)}
    return subprocess.Popen(
        [sys.executable, "-S", "-P", "-m", "sgmatrix.node.warden", str(spec_path)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )


def messages(warden: subprocess.Popen[str], stopped_s: float) -> Iterator[dict[str, Any]]:
    """Yield what a warden tells, until it ends.

    One that somebody has stopped, and that does not go on within `stopped_s`, is killed; the
    kernel then ends its server.
    """
    assert warden.stdout is not None
    out = warden.stdout.fileno()
    heard = b""
    since: float | None = None
    while True:
        if select.select([out], [], [], _LISTEN_S)[0]:
            part = os.read(out, 65536)
            if not part:
                return
            *lines, heard = (heard + part).split(b"\n")
            yield from map(json.loads, lines)
        elif not proc.stopped([warden.pid]):
            since = None
        elif since is None:
            since = time.monotonic()
        elif time.monotonic() - since > stopped_s:
            warden.kill()


@dataclass(frozen=True)
class Server:
    """A server that a warden keeps, found through the record of its launch."""

    warden: proc.Identity
    run_dir: Path
    attempt_dir: Path
    port: int
    nonce: str
    process: proc.Identity

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Server:
        live = record["live"]
        return cls(
            warden=proc.Identity(**live["warden"]),
            run_dir=Path(live["run_dir"]),
            attempt_dir=Path(record["attempt_dir"]),
            port=live["port"],
            nonce=live["nonce"],
            process=proc.Identity(**live["server"]),
        )

    def ask(self, **message: Any) -> bool:
        """Send the warden a message; False when it is gone."""
        try:
            pipe = os.open(self.run_dir / "control", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            os.write(pipe, (json.dumps(message) + "\n").encode())
        except OSError:
            return False
        finally:
            os.close(pipe)
        return self.warden.alive()

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Use the server for the time of the block.

        A job that ends without leaving the block well was disturbed; the warden then ends the
        server at once, instead of keeping it for jobs that will not come.
        """
        me = proc.identify(os.getpid())
        assert me is not None
        self.ask(ask="use", job=me.record())
        yield
        self.ask(ask="release", job=me.record())

    def closed(self, timeout_s: float) -> dict[str, Any] | None:
        """Return how the warden closed; None while it has not within the time.

        Raises:
            SgmatrixError: `interrupted` when it is gone without its closing record.
        """
        if not proc.wait_gone(self.warden, timeout_s):
            return None
        record: dict[str, Any] | None = read_json_or_none(self.attempt_dir / "closed.json")
        if record is None:
            raise SgmatrixError(
                "interrupted",
                f"the warden of {self.nonce} is gone without a closing record",
                fix="run snakemake again; the launch is repeated",
            )
        return record

    def failure(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the closing record if the server is not serving any more.

        A server that died gives its warden time to end what is left of it.

        Raises:
            SgmatrixError: when it was the environment that ended it.
        """
        record = self.closed(timeout_s if self.process.alive() else _CLOSING_S)
        if record is not None:
            raise_if_environment(record)
        return record

    def watch(self) -> int | None:
        """Return a descriptor that becomes readable when the warden ends; None when it has."""
        return proc.open_pidfd(self.warden)


def raise_if_environment(record: dict[str, Any]) -> None:
    """Raise when a closing record tells of a disturbance, which is never a result."""
    if record["reason"] is not None and is_environment(record["reason"]):
        line = record.get("root_line")
        raise SgmatrixError(record["reason"], record["detail"] + (f": {line}" if line else ""))
