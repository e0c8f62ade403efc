"""What /proc says, from texts of a real machine (Linux 6.18, 2 CPUs) and from this process."""

import os

import pytest

from sgmatrix.node.telemetry import procfs
from sgmatrix.node.telemetry.procfs import CpuTimes, ProcessStat

STAT = b"""\
cpu  35201 10 9209 37521 378 5 221 74 7 3
cpu0 10249 4 3644 27081 103 2 88 29 7 3
cpu1 24951 6 5564 10439 274 3 133 45 0 0
intr 452227 0 0 0
ctxt 1
"""
PROCESS = (
    b"77 (a) S 1 (b) R 6944 6944 5290 0 -1 4194304 102 0 0 0 31 7 400 60 20 0 9 0 41663 "
    b"3133440 389 18446744073709551615 1 2 3\n"
)


def test_the_times_of_cpus_are_those_of_our_mask():
    assert procfs.cpu_times(STAT, {0, 1}) == CpuTimes(
        busy=10249 + 4 + 3644 + 2 + 88 + 24951 + 6 + 5564 + 3 + 133,
        idle=27081 + 103 + 10439 + 274,
        steal=29 + 45,
    )
    assert procfs.cpu_times(STAT, {1}) == CpuTimes(30657, 10713, 45)
    assert procfs.cpu_times(STAT, {7}) == CpuTimes(0, 0, 0)


def test_a_process_is_read_right_whatever_its_name():
    assert procfs.parse_process(PROCESS) == ProcessStat(
        state="R", parent=6944, started=41663, own=38, waited=460, threads=9, rss_pages=389
    )


def test_this_process_is_its_own_witness():
    stat = procfs.process(os.getpid())

    assert (stat.state, stat.parent) == ("R", os.getppid())
    assert stat.rss_pages * procfs.PAGE_BYTES > 2**20
    assert os.getpid() in procfs.pids()
    assert stat.own <= sum(os.times()[:2]) * procfs.TICKS_PER_S + 1


def test_a_process_that_is_gone_has_no_numbers():
    assert procfs.process(2**22 + 1) is None
    assert procfs.thread_times(2**22 + 1) == {}


def test_each_thread_has_run_and_waited():
    if procfs.read("/proc/self/schedstat") is None:
        pytest.skip("this kernel keeps no schedstat")
    times = procfs.thread_times(os.getpid())

    assert os.getpid() in times
    assert times[os.getpid()][0] > 0


def test_memory_is_told_in_kib():
    raw = b"MemTotal:  4030692 kB\nMemAvailable:  100 kB\nHugePages_Total:   5\n"

    assert procfs.memory_kib(raw) == {"MemTotal": 4030692, "MemAvailable": 100}


def test_the_processor_has_a_name_or_none():
    assert procfs.cpu_model(b"vendor_id : x\nmodel name\t: AMD EPYC: 9\n\nflags : y\n") == (
        "AMD EPYC: 9"
    )
    assert procfs.cpu_model(b"nothing\n") is None


def test_of_many_cpus_the_clocks_of_evenly_spread_ones_are_asked(monkeypatch):
    asked = []

    def clock(cpu, name):
        asked.append(cpu)
        return {"scaling_cur_freq": "2500000"}[name] if cpu else None

    monkeypatch.setattr(procfs, "frequency_text", clock)

    assert procfs.clocks_mhz(range(64)) == [2500.0] * 15  # CPU 0 tells nothing
    assert asked == list(range(0, 64, 4))
    assert procfs.clocks_mhz([]) == []
