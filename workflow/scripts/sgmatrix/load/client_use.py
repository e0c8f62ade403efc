"""What a load client took of the machine while it measured, apart from its own start."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sgmatrix.node import proc


@dataclass(frozen=True)
class Look:
    """One look at a running client: what it has taken since it began."""

    time_s: float
    """Unix time."""
    cpu_s: float
    delay_s: float


@dataclass(frozen=True)
class ClientUse:
    """What the client took during the measured window."""

    cpu_cores: float
    """User and system time per second."""
    delay_share: float
    """Seconds that its threads were ready to run and waited for a CPU, all together, per second."""
    cpus: int
    """CPUs that it can use."""
    one_thread: bool = False
    """Whether it is one event loop, in which answers queue long before its CPU is full."""


class Watch:
    """Looks at a client while it runs, since its end hides what it took."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.looks = [Look(time.time(), 0.0, 0.0)]

    def look(self) -> None:
        seen = proc.cpu_use(self._pid)
        if seen is not None:
            self.looks.append(Look(time.time(), seen.cpu_s, seen.delay_s))


def use_within(
    looks: Sequence[Look], start_s: float, end_s: float, *, one_thread: bool = False
) -> ClientUse | None:
    """Return what the client took in a window, from the looks nearest to its borders.

    None where no two looks enclose a part of it.

    Args:
        looks: at the client, by time.
        start_s: Unix time.
        end_s: Unix time.
        one_thread: whether all its work is done by one thread.
    """
    before = [one for one in looks if one.time_s <= start_s]
    within = [one for one in looks if start_s < one.time_s <= end_s]
    first = before[-1] if before else within[0] if within else None
    last = within[-1] if within else None
    if first is None or last is None or last.time_s <= first.time_s:
        return None
    span_s = last.time_s - first.time_s
    return ClientUse(
        cpu_cores=max(0.0, last.cpu_s - first.cpu_s) / span_s,
        # threads that ended take their delay with them
        delay_share=max(0.0, last.delay_s - first.delay_s) / span_s,
        cpus=1 if one_thread else len(os.sched_getaffinity(0)),
        one_thread=one_thread,
    )
