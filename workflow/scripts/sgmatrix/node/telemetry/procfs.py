"""What /proc says in numbers: time of the CPUs, of processes and of threads, memory, clocks.

Read with bare system calls: at two ticks a second the cost of a reading is what the sampler
costs the server beside it. Parsers take bytes and touch no file.
Source  Linux, Documentation/filesystems/proc.rst and Documentation/scheduler/sched-stats.rst.
Standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
"""Unit of the times in stat files: 100 on every common kernel, so they step by 10 ms."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_STAT_BYTES = 2**18
"""One read; /proc/stat begins with the CPUs, about 100 bytes each."""
_CLOCKS_READ = 16
"""A clock can cost an interrupt to its CPU; so many, evenly spread, make a fair mean."""


def read(path: str, size: int = 4096) -> bytes | None:
    """Return what one read of a file of /proc or /sys gives; None when it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(descriptor, size)
    except OSError:  # the process has ended meanwhile
        return None
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Time that some CPUs have spent since boot, in clock ticks, all of them together."""

    busy: int
    idle: int
    """Waiting for a disk is idle, too."""
    steal: int
    """Taken by the host of a virtual machine."""


def cpu_times(raw: bytes, cpus: Collection[int]) -> CpuTimes:
    """Return the times of those CPUs from /proc/stat; guests are within `user` already."""
    busy = idle = steal = 0
    for line in raw.splitlines():
        if not line.startswith(b"cpu"):
            break  # the lines of the CPUs come first
        name, *fields = line.split()
        if name == b"cpu" or int(name[3:]) not in cpus:
            continue
        user, nice, system, idling, waiting, irq, softirq, stolen = map(int, fields[:8])
        busy += user + nice + system + irq + softirq
        idle += idling + waiting
        steal += stolen
    return CpuTimes(busy, idle, steal)


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """One process; times in clock ticks since it started."""

    state: str
    parent: int
    started: int
    """Clock ticks since boot; with the pid it is an identity."""
    own: int
    """Its own CPU time, all threads, also those that have ended."""
    waited: int
    """CPU time of the children that it has waited for, and of theirs."""
    threads: int
    rss_pages: int


def parse_process(raw: bytes) -> ProcessStat:
    """Return what /proc/<pid>/stat says; the name may hold blanks and brackets."""
    f = raw.rpartition(b")")[2].split()
    return ProcessStat(
        state=f[0].decode(),
        parent=int(f[1]),
        started=int(f[19]),
        own=int(f[11]) + int(f[12]),
        waited=int(f[13]) + int(f[14]),
        threads=int(f[17]),
        rss_pages=int(f[21]),
    )


def process(pid: int) -> ProcessStat | None:
    """Return the numbers of a process; None when it is gone, a zombie still counts."""
    raw = read(f"/proc/{pid}/stat")
    return parse_process(raw) if raw else None


def pids() -> list[int]:
    """Return all processes that can be seen."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def thread_times(pid: int) -> dict[int, tuple[int, int]]:
    """Return (time on a CPU, time ready but waiting for one) of each thread, in nanoseconds.

    Empty where the process is gone or the kernel keeps no schedstat.
    """
    found: dict[int, tuple[int, int]] = {}
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        if raw := read(f"/proc/{pid}/task/{thread}/schedstat", 128):
            ran, waited = raw.split()[:2]
            found[int(thread)] = (int(ran), int(waited))
    return found


def memory_kib(raw: bytes) -> dict[str, int]:
    """Return the lines of /proc/meminfo that have a size, in KiB."""
    rows = (line.split() for line in raw.decode().splitlines())
    return {row[0].rstrip(":"): int(row[1]) for row in rows if len(row) == 3 and row[2] == "kB"}


def cpu_model(raw: bytes) -> str | None:
    """Return the name of the processor from /proc/cpuinfo."""
    for line in raw.decode(errors="replace").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return None


def frequency_text(cpu: int, name: str) -> str | None:
    """Return one file of a CPU's cpufreq; None where there is none, as in virtual machines."""
    raw = read(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}", 64)
    return raw.decode().strip() if raw else None


def clocks_mhz(cpus: Collection[int]) -> list[float]:
    """Return the clocks of these CPUs, of evenly spread ones where there are many.

    Only what cpufreq measures: /proc/cpuinfo of a virtual machine repeats the nominal clock.
    """
    step = -(-len(cpus) // _CLOCKS_READ)
    texts = [frequency_text(cpu, "scaling_cur_freq") for cpu in sorted(cpus)[:: step or 1]]
    return [int(text) / 1000 for text in texts if text and text.isdecimal()]


def stat_of_cpus(cpus: Collection[int]) -> CpuTimes | None:
    """Return the times of those CPUs now."""
    raw = read("/proc/stat", _STAT_BYTES)
    return cpu_times(raw, cpus) if raw else None
