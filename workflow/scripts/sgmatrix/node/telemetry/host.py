"""The machine and the processes on it: what they have used since the sample before.

Rates need an interval. One shorter than half a tick would be noise of the kernel's 10 ms
clock, so it gives none, and the next sample covers both.
Not here  GPUs (`gpus`), time and files (`sampler`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from sgmatrix.node.telemetry import procfs
from sgmatrix.node.telemetry.accounts import Accounts, Usage
from sgmatrix.node.telemetry.procfs import TICKS_PER_S, CpuTimes
from sgmatrix.node.telemetry.runqueue import RunQueue


@dataclass(frozen=True)
class Counters:
    """What only grows, at one moment of the monotonic clock."""

    at_s: float
    cpus: CpuTimes | None
    engine_ticks: int
    harness_ticks: int


@dataclass(frozen=True)
class Rates:
    """What was used between two moments; None is what the kernel does not tell."""

    interval_s: float
    busy_share: float | None
    """Of the CPUs of our mask, 0..1."""
    steal_share: float | None
    engine_cores: float
    """CPU seconds per second."""
    harness_cores: float
    foreign_cores: float | None
    """What is left of the busy CPUs, never below 0: the kernel's clocks are not one clock."""


def rates(before: Counters, now: Counters, cpus: int) -> Rates:
    """Return what was used from `before` to `now` on so many CPUs."""
    interval_s = now.at_s - before.at_s
    engine = (now.engine_ticks - before.engine_ticks) / TICKS_PER_S / interval_s
    harness = (now.harness_ticks - before.harness_ticks) / TICKS_PER_S / interval_s
    busy = steal = foreign = None
    if before.cpus is not None and now.cpus is not None:
        worked = now.cpus.busy - before.cpus.busy
        stolen = now.cpus.steal - before.cpus.steal
        # the idle time of a CPU may step back when it goes offline
        whole = worked + stolen + max(0, now.cpus.idle - before.cpus.idle)
        if whole > 0:
            busy, steal = worked / whole, stolen / whole
            foreign = max(0.0, busy * cpus - engine - harness)
    return Rates(interval_s, busy, steal, engine, harness, foreign)


class Host:
    """Reads the machine at each tick."""

    def __init__(self, accounts: Accounts, period_s: float) -> None:
        self._accounts = accounts
        self._shortest_s = period_s / 2
        self._cpus = os.sched_getaffinity(0)
        self._queue = RunQueue()
        self._before: Counters | None = None
        self.warden_alive = True

    def facts(self) -> dict[str, Any]:
        """Return what does not change."""
        governors = {procfs.frequency_text(cpu, "scaling_governor") for cpu in self._cpus}
        model = procfs.read("/proc/cpuinfo")
        return _known(
            cpus=len(self._cpus),
            cpu_ids=sorted(self._cpus),
            cpu_model=procfs.cpu_model(model) if model else None,
            governor=",".join(sorted(filter(None, governors))) or None,
            schedstat=bool(procfs.thread_times(os.getpid())),
        )

    def sample(self, now_s: float) -> dict[str, Any]:
        """Return `host`, `engine`, `harness`, and over which interval their rates are.

        Args:
            now_s: monotonic time, just now.
        """
        cpus = procfs.stat_of_cpus(self._cpus)
        usage = self._accounts.look()
        self.warden_alive = usage.warden_alive
        now = Counters(now_s, cpus, usage.engine_ticks, usage.harness_ticks)
        found: Rates | None = None
        if self._before is None:
            self._before = now
        elif now_s - self._before.at_s >= self._shortest_s:
            found = rates(self._before, now, len(self._cpus))
            self._before = now
        return {
            **_known(interval_s=found.interval_s if found else None),
            "host": self._host(found),
            "engine": self._engine(now_s, usage, found),
            "harness": _known(cpu_cores=found.harness_cores if found else None),
        }

    def _host(self, found: Rates | None) -> dict[str, Any]:
        memory = procfs.memory_kib(procfs.read("/proc/meminfo") or b"")
        load = procfs.read("/proc/loadavg", 64)
        clocks = procfs.clocks_mhz(self._cpus)
        total, free = memory.get("MemTotal"), memory.get("MemAvailable")
        return _known(
            cpu_busy_share=found.busy_share if found else None,
            cpu_steal_share=found.steal_share if found else None,
            foreign_cpu_cores=found.foreign_cores if found else None,
            load_average_1m=float(load.split()[0]) if load else None,
            memory_used_mib=None if total is None or free is None else (total - free) / 1024,
            memory_available_mib=None if free is None else free / 1024,
            cpu_mhz_mean=sum(clocks) / len(clocks) if clocks else None,
        )

    def _engine(self, now_s: float, usage: Usage, found: Rates | None) -> dict[str, Any]:
        delay = self._queue.look(now_s, usage.engine_pids, usage.engine_threads)
        return _known(
            processes=len(usage.engine_pids),
            threads=usage.engine_threads,
            rss_mib=usage.engine_rss_bytes / 2**20,
            cpu_cores=found.engine_cores if found else None,
            run_queue_delay_share=delay.share if delay else None,
            run_queue_delay_cores=delay.cores if delay else None,
        )


def _known(**values: Any) -> dict[str, Any]:
    """Return the values that are there, with no more digits than they are worth."""
    return {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in values.items()
        if value is not None
    }
