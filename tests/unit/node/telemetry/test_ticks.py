"""A fixed grid in time."""

import pytest

from sgmatrix.node.telemetry.ticks import Ticks


def test_ticks_do_not_drift_with_what_each_costs():
    ticks = Ticks(100.0, 2.0)

    assert ticks.wait_s(100.125) == 0.375  # to 100.5
    assert ticks.wait_s(100.75) == 0.25  # to 101.0
    assert ticks.wait_s(101.0) == 0.5  # to 101.5
    assert ticks.skipped == 0


def test_ticks_that_have_passed_are_left_out_and_counted():
    ticks = Ticks(0.0, 2.0)

    assert ticks.wait_s(2.25) == 0.25  # 0.5, 1.0, 1.5 and 2.0 are past
    assert ticks.skipped == 4
    assert ticks.wait_s(2.5) == 0.5
    assert ticks.skipped == 4


def test_a_wait_that_ended_early_does_not_give_one_tick_twice():
    ticks = Ticks(0.0, 1.0)

    assert ticks.wait_s(0.0) == 1.0
    assert ticks.wait_s(0.875) == 1.125
    assert ticks.skipped == 0


@pytest.mark.parametrize("hz", [0.1, 3.0, 7.0, 50.0])
def test_a_long_run_has_each_tick_once(hz):
    ticks, now_s = Ticks(1e6, hz), 1e6
    for n in range(1, 2000):
        now_s += ticks.wait_s(now_s)
        assert now_s == pytest.approx(1e6 + n / hz, abs=1e-6)
        now_s += 1e-4
    assert ticks.skipped == 0
