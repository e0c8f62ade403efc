"""How long the engine's threads were ready to run and got no CPU.

Source  /proc/<pid>/task/<tid>/schedstat: nanoseconds on a CPU, nanoseconds on a run queue.
A server has hundreds of threads and each is a file, so a large one is looked at less often;
the counters only grow, so nothing is lost but the last moments of threads that ended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from sgmatrix.node.telemetry import procfs

_THREADS_PER_LOOK = 256


@dataclass(frozen=True)
class Delay:
    """What threads waited for since the look before."""

    share: float | None
    """Waiting / (waiting + running), 0..1; None when no thread wanted to run."""
    cores: float
    """Threads that waited for a CPU, in the mean over time."""


class RunQueue:
    """The run-queue delay of changing processes."""

    def __init__(
        self, read: Callable[[int], dict[int, tuple[int, int]]] = procfs.thread_times
    ) -> None:
        self._read = read
        self._known: dict[int, tuple[int, int]] = {}
        self._at_s: float | None = None
        self._pause = 0

    def look(self, now_s: float, pids: Collection[int], threads: int) -> Delay | None:
        """Return the delay since the last look.

        Args:
            now_s: monotonic time.
            pids: the processes.
            threads: how many they have; more than 256 are looked at every second, third... time.

        Returns:
            None at the first look, at a look that is left out, and without schedstat.
        """
        if self._pause > 0:
            self._pause -= 1
            return None
        self._pause = -(-threads // _THREADS_PER_LOOK) - 1 if threads else 0
        now: dict[int, tuple[int, int]] = {}
        for pid in pids:
            now |= self._read(pid)
        before, then_s = self._known, self._at_s
        self._known, self._at_s = now, now_s
        if then_s is None or now_s <= then_s or not now:
            return None
        ran = waited = 0
        for thread, (run_ns, wait_ns) in now.items():
            run_before, wait_before = before.get(thread, (0, 0))
            if run_ns < run_before:  # the number went to a new thread
                run_before = wait_before = 0
            ran += run_ns - run_before
            waited += max(0, wait_ns - wait_before)
        both = ran + waited
        return Delay(waited / both if both else None, waited / 1e9 / (now_s - then_s))
