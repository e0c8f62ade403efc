"""What the kernel tells of a process: run and waited, and who else used the machine."""

import os

import pytest

from perf.lockstep.account import Machine, Sample, Scheduled, Waits, check_schedstat, waits


def test_shares_are_of_the_load_and_not_of_the_start_before_it():
    samples = [Sample(0, 0, 0), Sample(10, 5, 5), Sample(12, 6, 5.5), Sample(14, 6.2, 7)]

    found = waits(samples, from_s=10.5)

    assert found == Waits(
        ran=pytest.approx(1.2 / 4), waited=pytest.approx(2 / 4), most_waited=pytest.approx(1.5 / 2)
    )


def test_one_sample_tells_nothing():
    assert waits([Sample(1, 0, 0)], from_s=0.5) is None


def test_a_process_that_has_ended_keeps_its_last_sample(process):
    busy = process("sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done; echo; read x")
    busy.stdout.readline()
    scheduled = Scheduled(busy.pid)
    busy.stdin.close()
    busy.wait(30)
    scheduled.sample()

    first, last = scheduled.samples
    assert first.ran_s > 0.001
    assert (last.ran_s, last.waited_s) == (first.ran_s, first.waited_s)


def test_foreign_work_is_what_is_neither_idle_nor_our_own():
    assert Machine(100, 20).foreign_cores(Machine(110, 28), own_cpu_s=3) == pytest.approx(0.5)


def test_the_kernel_under_the_tests_accounts_for_waiting():
    if not os.path.exists("/proc/self/schedstat"):  # noqa: PTH110
        pytest.skip("a kernel without CONFIG_SCHED_INFO")
    check_schedstat()
