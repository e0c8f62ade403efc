"""What the kernel tells of a process and of the machine while a client runs.

Source    /proc/<pid>/task/<tid>/schedstat: ns on a core, ns runnable but waiting for one, times
          it was put on a core (Documentation/scheduler/sched-stats.rst); /proc/stat (proc(5)).
          Both are there without any setting of the kernel: checked on Linux 6.18.
Not here  what the numbers mean for a measurement.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sgmatrix.core.errors import SgmatrixError

_TICKS_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Sample:
    """A process at one time: seconds that its threads have run and waited for a core so far."""

    at_s: float
    """CLOCK_MONOTONIC."""
    ran_s: float
    waited_s: float


class Scheduled:
    """Samples of one process, the first of them made here.

    A thread that has ended is gone from /proc; its last known times stay in the sums.
    """

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}/task")
        self._threads: dict[str, tuple[int, int]] = {}
        self.samples: list[Sample] = []
        self.sample()

    def sample(self) -> None:
        """Take a sample; a process that has ended keeps the last one."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for thread in os.listdir(self._folder):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    ran, waited, _ = (self._folder / thread / "schedstat").read_text().split()
                    self._threads[thread] = int(ran), int(waited)
        ran_ns = sum(ran for ran, _ in self._threads.values())
        waited_ns = sum(waited for _, waited in self._threads.values())
        self.samples.append(Sample(time.monotonic(), ran_ns / 1e9, waited_ns / 1e9))


@dataclass(frozen=True)
class Waits:
    """How a process fared between two times, in seconds per second, its threads summed."""

    ran: float
    waited: float
    """Runnable without a core: the run-queue delay."""
    most_waited: float
    """The same, in that interval between two samples where it was most."""


def waits(samples: Sequence[Sample], from_s: float) -> Waits | None:
    """Return how a process fared from the last sample before a time to the last of all.

    None when there are no two samples: it ended before the second one.
    """
    earlier = [sample for sample in samples if sample.at_s <= from_s][-1:]
    seen = [*earlier, *(sample for sample in samples if sample.at_s > from_s)]
    steps = [(a, b, b.at_s - a.at_s) for a, b in itertools.pairwise(seen) if b.at_s > a.at_s]
    if not steps:
        return None
    first, last = seen[0], seen[-1]
    took_s = last.at_s - first.at_s
    return Waits(
        ran=(last.ran_s - first.ran_s) / took_s,
        waited=(last.waited_s - first.waited_s) / took_s,
        most_waited=max((b.waited_s - a.waited_s) / step_s for a, b, step_s in steps),
    )


@dataclass(frozen=True)
class Machine:
    """The machine at one time: seconds of all its cores that were not idle, since boot."""

    at_s: float
    busy_s: float

    @classmethod
    def now(cls) -> Machine:
        at_s = time.monotonic()
        values = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
        idle_s = (int(values[3]) + int(values[4])) / _TICKS_S  # idle, iowait
        # Not by the other columns: they are counted by the timer tick and miss short work.
        return cls(at_s, at_s * _cores() - idle_s)

    def foreign_cores(self, later: Machine, own_cpu_s: float) -> float:
        """Return how many cores others used on average, time stolen by a hypervisor included."""
        return (later.busy_s - self.busy_s - own_cpu_s) / (later.at_s - self.at_s)


def _cores() -> int:
    return os.cpu_count() or 1


def check_schedstat() -> None:
    """Refuse a kernel that does not account for waiting.

    Raises:
        SgmatrixError: `no_schedstat` when the file is missing or does not count.
    """
    try:
        ran, _, _ = Path("/proc/self/schedstat").read_text().split()
    except (OSError, ValueError) as error:
        raise SgmatrixError(
            "no_schedstat", f"/proc/self/schedstat: {error}", fix="a kernel with CONFIG_SCHED_INFO"
        ) from None
    if not int(ran):
        raise SgmatrixError("no_schedstat", "/proc/self/schedstat does not count")
