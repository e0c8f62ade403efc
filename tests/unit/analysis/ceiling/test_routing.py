"""Distinct experts and stragglers against counting by hand."""

import pytest

from sgmatrix.analysis.ceiling.routing import distinct_experts, straggler


def test_distinct_experts() -> None:
    assert distinct_experts(256, 8, 1) == pytest.approx(8)
    assert distinct_experts(256, 8, 2) == pytest.approx(8 + 8 * 248 / 256)
    assert distinct_experts(256, 8, 16) == pytest.approx(102.0, abs=0.1)
    assert distinct_experts(256, 8, 64) == pytest.approx(222.4, abs=0.1)
    assert distinct_experts(128, 8, 10_000) == pytest.approx(128)


def test_one_token_on_two_devices_by_hand() -> None:
    """2 experts of 4, 2 on each device: both on one device in 1/3 of the cases."""
    opened, copies = straggler(4, 2, 1, 2)
    assert opened == pytest.approx((1 / 3 * 2 + 2 / 3 * 1) / 1, rel=0.05)
    assert copies == opened


def test_large_batches_are_even() -> None:
    assert straggler(256, 8, 1, 8)[0] == pytest.approx(2.58, rel=0.05)
    assert straggler(256, 8, 2, 8)[0] == pytest.approx(2.06, rel=0.05)
    opened, copies = straggler(256, 8, 512, 8)
    assert opened == pytest.approx(1.0, abs=1e-3)
    assert 1.0 < copies < 1.1


def test_experts_that_do_not_divide_are_taken_as_even() -> None:
    assert straggler(60, 4, 3, 1) == (1.0, 1.0)
    assert straggler(60, 4, 3, 8) == (1.0, 1.0)
