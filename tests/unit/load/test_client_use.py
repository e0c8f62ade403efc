"""What a load client took while it measured, from made-up looks at it."""

import os

import pytest

from sgmatrix.load.client_use import ClientUse, Look, use_within

CPUS = len(os.sched_getaffinity(0))


def test_the_client_s_own_start_is_no_part_of_what_it_took():
    # 8 s of imports, then a quarter of a CPU; it waited for 0.4 s meanwhile
    looks = [Look(0, 0.0, 0.0), Look(9, 8.0, 0.1), Look(10, 8.0, 0.1), Look(14, 9.0, 0.5)]

    assert use_within(looks, 10.0, 14.2) == ClientUse(0.25, pytest.approx(0.1), CPUS)


def test_a_client_of_one_thread_has_one_cpu_wherever_it_runs():
    looks = [Look(0, 0.0, 0.0), Look(4, 1.0, 0.0)]

    assert use_within(looks, 0, 4, one_thread=True) == ClientUse(0.25, 0.0, 1, one_thread=True)


def test_the_last_look_before_the_window_is_its_begin():
    looks = [Look(0, 0.0, 0.0), Look(2, 1.0, 0.0), Look(6, 3.0, 0.0)]

    assert use_within(looks, 3.0, 6.5).cpu_cores == 0.5


def test_a_thread_that_ended_takes_its_delay_with_it_and_none_is_negative():
    looks = [Look(0, 0.0, 0.9), Look(2, 1.0, 0.1)]

    assert use_within(looks, 0.0, 2.0).delay_share == 0.0


def test_a_window_without_two_looks_is_not_known():
    assert use_within([Look(0, 0.0, 0.0)], 1.0, 2.0) is None
    assert use_within([Look(1.5, 0.0, 0.0)], 1.0, 2.0) is None
    assert use_within([], 1.0, 2.0) is None
