"""The sampler of one launch: a line of telemetry per tick, beside the server, until SIGTERM.

    python -P -m sgmatrix.node.sampler SPEC.json

SPEC  `file` to append to; `hz`; `warden` and `owner` as {pid, ticks, boot}; `gpus`, NVML
      indices or UUIDs, [] for none; `cpu`, whether the machine and its processes are sampled.
Lines `{"facts": ...}`  of the machine first; of the GPUs when NVML has told them
      `{"error": ...}`  once for each kind of thing that cannot be measured
      `{"t": ..., "host": ..., "engine": ..., "harness": ..., "gpus": {...}}`  a sample:
      t           unix time of the tick; gpus.<i>.t that of the GPU's reading, which may be
                  that of the tick before when the driver is slow
      took_ms     wall time from tick to line, with waiting for the GPUs
      cpu_ms      CPU time of the sampler since the sample before
      interval_s  over which the rates of this line are
      skipped     ticks left out so far; lost: lines that could not be written so far
What is not known is left out. It ends with a last sample at SIGTERM, or when its warden is gone.
Standard library only, and nvidia-ml-py where there are GPUs.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json
from sgmatrix.node.proc import Identity
from sgmatrix.node.telemetry.accounts import Accounts
from sgmatrix.node.telemetry.gpu_thread import GpuThread
from sgmatrix.node.telemetry.gpus import Gpus, Reading, Trouble
from sgmatrix.node.telemetry.host import Host
from sgmatrix.node.telemetry.sink import Sink
from sgmatrix.node.telemetry.ticks import Ticks

_HZ_MAX = 100.0
_GPU_WAIT_S = 0.1
"""For a reading of this tick; one that takes longer is the next tick's, with its age."""
_GPU_AGE_TICKS = 2


@dataclass(frozen=True)
class Spec:
    """What one sampler is to do."""

    file: str
    hz: float
    warden: Identity
    owner: Identity
    gpus: Sequence[str]
    cpu: bool

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Spec:
        """Return the spec as the warden wrote it.

        Raises:
            SgmatrixError: `config_rejected` when nothing can be sampled at that pace.
        """
        hz = float(record["hz"])
        if not 0 < hz <= _HZ_MAX:
            raise SgmatrixError(
                "config_rejected",
                f"telemetry hz = {hz:g}, allowed 0 < hz <= {_HZ_MAX:g}",
                fix="2 samples a second are plenty; name another pace",
            )
        return cls(
            file=str(record["file"]),
            hz=hz,
            warden=Identity(**record["warden"]),
            owner=Identity(**record["owner"]),
            gpus=[str(name) for name in record["gpus"]],
            cpu=bool(record["cpu"]),
        )


class Sampler:
    """Makes the lines of one launch."""

    def __init__(
        self, spec: Spec, *, make_gpus: Callable[..., Gpus] = Gpus, sink: Sink | None = None
    ) -> None:
        period_s = 1 / spec.hz
        self.spec = spec
        self.sink = sink or Sink(spec.file)
        self.ticks = Ticks(time.monotonic(), spec.hz)
        self._accounts = Accounts(spec.warden, spec.owner)
        self._host = Host(self._accounts, period_s)
        self._gpu_wait_s = min(_GPU_WAIT_S, period_s / 4)
        self._gpus: GpuThread | None = None
        if spec.gpus:
            self._gpus = GpuThread(
                lambda tell: make_gpus(spec.gpus, tell), max_age_s=_GPU_AGE_TICKS * period_s
            )
        self._cpu_s = time.process_time()
        self._failures: set[str] = set()

    @property
    def warden_alive(self) -> bool:
        """Whether the warden was there at the last sample."""
        return self._host.warden_alive

    def begin(self) -> None:
        """Write the facts of the machine."""
        facts = {"t": round(time.time(), 3), "hz": self.spec.hz}
        self.sink.write({"facts": facts | (self._host.facts() if self.spec.cpu else {})})

    def sample(self) -> None:
        """Take one sample and write its line, after what there is to tell of the GPUs."""
        t, now_s = time.time(), time.monotonic()
        if self._gpus is not None:
            self._gpus.ask()
        line = self._host.sample(now_s) if self.spec.cpu else {}
        if self._gpus is not None:
            readings = self._gpus.latest(self._gpu_wait_s)
            line["gpus"] = {key: self._gpu(one) for key, one in readings.items()}
            while not self._gpus.news.empty():
                self.sink.write(self._gpus.news.get())
        cpu_s = time.process_time()
        head = {
            "t": round(t, 4),
            "took_ms": round((time.monotonic() - now_s) * 1e3, 3),
            "cpu_ms": round((cpu_s - self._cpu_s) * 1e3, 3),
            "skipped": self.ticks.skipped,
            "lost": self.sink.lost,
        }
        self._cpu_s = cpu_s
        self.sink.write(head | line)

    def attempt(self) -> None:
        """Take one sample; what goes wrong costs this one, and is told once for each kind."""
        try:
            self.sample()
        except Exception as error:  # noqa: BLE001 - no descriptors left, a file of /proc in a new form
            kind = type(error).__name__
            if kind not in self._failures:
                self._failures.add(kind)
                told = Trouble("sampler", "", kind, str(error))
                self.sink.write({"error": told.record()})

    def _gpu(self, reading: Reading) -> dict[str, Any]:
        values = {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in reading.values.items()
            if name != "pids"
        }
        if "pids" in reading.values and self.spec.cpu:
            strangers = [p for p in reading.values["pids"] if not self._accounts.was_engine(p)]
            there = [pid for pid in strangers if Path(f"/proc/{pid}").exists()]
            values["foreign_pids"] = there
            # in a container NVML may count processes as its host does: they may be our own
            values["unseen_pids"] = [pid for pid in strangers if pid not in there]
        return {"t": round(reading.t_s, 4), **values}


def run(spec: Spec, stop: int) -> None:
    """Sample until the descriptor `stop` is readable, or until the warden is gone."""
    sampler = Sampler(spec)
    sampler.begin()
    while True:
        sampler.attempt()
        if not sampler.warden_alive:
            return
        # not sigtimedwait: Python 3.11 takes a wait that SIGSTOP and SIGCONT cut short for a signal
        if select.select([stop], [], [], sampler.ticks.wait_s(time.monotonic()))[0]:
            sampler.attempt()
            return


def main(spec_path: str) -> None:
    """Run in a process of its own."""
    stop, told = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(told)  # also when the kernel hands a signal to the thread of the GPUs
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: None)
    run(Spec.from_record(read_json(Path(spec_path))), stop)
    os._exit(0)  # a thread that hangs in the driver must not hold up the end


if __name__ == "__main__":
    main(sys.argv[1])
