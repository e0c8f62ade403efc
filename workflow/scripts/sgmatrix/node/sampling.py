"""Starts and ends the sampler of telemetry beside a server, for its warden."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sgmatrix.core.files import write_json
from sgmatrix.node import proc

_END_S = 2.0


class Sampling:
    """One sampler: a process of its own, so that a driver that hangs holds up nobody."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self,
        file: Path,
        spec_path: Path,
        *,
        hz: float,
        owner: Mapping[str, Any],
        devices: Sequence[str],
    ) -> None:
        """Begin to sample; where that is impossible, the launch goes on without.

        Args:
            file: what the samples are appended to.
            spec_path: where the sampler's own instructions are written.
            hz: samples per second; 0: none.
            owner: identity of the Snakemake process, whose tree is the harness.
            devices: of the lease, `gpu-0` and so on.
        """
        me = proc.identify(os.getpid())
        if not hz or me is None:
            return
        gpus = [name.removeprefix("gpu-") for name in devices if name.startswith("gpu-")]
        spec = {
            "file": str(file),
            "hz": hz,
            "warden": me.record(),
            "owner": dict(owner),
            "gpus": gpus,
            "cpu": True,
        }
        with contextlib.suppress(OSError):
            write_json(spec_path, spec)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "sgmatrix.node.sampler", str(spec_path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                preexec_fn=proc.die_with_parent,  # noqa: PLW1509 - no other thread runs yet
            )
            proc.set_aside(self._process.pid)

    def stop(self) -> None:
        """Let it take a last sample, and end it."""
        if self._process is None or self._process.poll() is not None:
            return
        descriptor = os.pidfd_open(self._process.pid)
        try:
            self._process.terminate()
            if not select.select([descriptor], [], [], _END_S)[0]:
                self._process.kill()
                if not select.select([descriptor], [], [], _END_S)[0]:
                    return  # stuck in a driver; the lease does not wait for it
        finally:
            os.close(descriptor)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
