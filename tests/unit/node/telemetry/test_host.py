"""Rates of the machine, by hand; and the real machine, as far as it can be known."""

import os

import pytest

from sgmatrix.node.telemetry import host as host_module
from sgmatrix.node.telemetry import procfs
from sgmatrix.node.telemetry.accounts import Usage
from sgmatrix.node.telemetry.host import Counters, Host, Rates, rates
from sgmatrix.node.telemetry.procfs import CpuTimes

START = Counters(10.0, CpuTimes(busy=1000, idle=5000, steal=100), 300, 200)


def test_what_is_neither_engine_nor_harness_is_foreign():
    # 2 s on 4 CPUs are 800 ticks: 600 busy, 40 stolen; 250 engine, 50 harness
    now = Counters(12.0, CpuTimes(busy=1600, idle=5160, steal=140), 550, 250)

    assert rates(START, now, 4) == Rates(
        interval_s=2.0,
        busy_share=0.75,
        steal_share=0.05,
        engine_cores=1.25,
        harness_cores=0.25,
        foreign_cores=1.5,
    )


def test_foreign_use_is_never_below_nothing():
    now = Counters(11.0, CpuTimes(busy=1010, idle=5190, steal=100), 320, 200)

    assert rates(START, now, 2).foreign_cores == 0.0


@pytest.mark.parametrize("cpus", [None, START.cpus])
def test_a_machine_that_does_not_tell_has_no_shares(cpus):
    found = rates(START, Counters(11.0, cpus, 400, 200), 2)

    assert (found.busy_share, found.steal_share, found.foreign_cores) == (None, None, None)
    assert (found.engine_cores, found.harness_cores) == (1.0, 0.0)


class Books:
    """Accounts that say what they are told to."""

    def __init__(self):
        self.ticks = 0

    def look(self):
        return Usage(self.ticks, 0, [os.getpid()], 3, 5 * 2**20, warden_alive=True)


@pytest.fixture
def machine(monkeypatch):
    monkeypatch.setattr(host_module.os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(procfs, "stat_of_cpus", lambda cpus: None)
    books = Books()
    return books, Host(books, period_s=0.5)


def test_a_first_sample_has_no_rates(machine):
    _, host = machine
    sample = host.sample(5.0)

    assert "interval_s" not in sample
    assert sample["harness"] == {}
    assert sample["engine"] == {"processes": 1, "threads": 3, "rss_mib": 5.0}
    assert not sample["host"].keys() & {"cpu_busy_share", "foreign_cpu_cores", "cpu_steal_share"}


def test_an_interval_that_is_too_short_is_covered_by_the_next_sample(machine):
    books, host = machine
    host.sample(5.0)
    books.ticks = 10
    assert "cpu_cores" not in host.sample(5.1)["engine"]
    books.ticks = 60
    sample = host.sample(5.6)

    assert (sample["engine"]["cpu_cores"], sample["interval_s"]) == (1.0, 0.6)


def test_this_machine_is_known(machine):
    sample = machine[1].sample(5.0)["host"]

    assert sample["memory_used_mib"] > 0
    assert sample["memory_used_mib"] + sample["memory_available_mib"] == pytest.approx(
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20, rel=0.01
    )
    assert sample["load_average_1m"] >= 0


def test_facts_leave_out_what_is_not_known(machine, monkeypatch):
    monkeypatch.setattr(procfs, "frequency_text", lambda cpu, name: None)
    monkeypatch.setattr(procfs, "thread_times", lambda pid: {})
    facts = machine[1].facts()

    assert (facts["cpus"], facts["cpu_ids"], facts["schedstat"]) == (2, [0, 1], False)
    assert "governor" not in facts


def test_governors_that_differ_are_all_named(machine, monkeypatch):
    texts = {0: "powersave", 1: "performance"}
    monkeypatch.setattr(procfs, "frequency_text", lambda cpu, name: texts[cpu])

    assert machine[1].facts()["governor"] == "performance,powersave"
