"""Welch's t against values worked out by hand, and against scipy's own."""

import math

import pytest
from scipy import stats

from sgmatrix.analysis.campaigns.welch import difference, noise_floor

A, B = (1.0, 2.0, 3.0), (4.0, 6.0, 8.0)
"""Variances 1 and 4: e_a = 1/3, e_b = 4/3."""


def test_the_difference_of_two_arms_by_hand():
    found = difference(A, B)

    assert found.mean == 4.0
    assert found.error == pytest.approx(math.sqrt(5 / 3))
    assert found.df == pytest.approx((25 / 9) / (1 / 18 + 16 / 18))  # 50 / 17
    # t(0.975; 2.941) = 3.2186: by interpolation in any table between 4.303 and 3.182
    assert found.half_width(0.05) == pytest.approx(3.2186 * math.sqrt(5 / 3), abs=2e-3)


def test_agrees_with_an_implementation_that_shares_no_code():
    theirs = stats.ttest_ind(B, A, equal_var=False)
    found = difference(A, B)

    assert found.p() == pytest.approx(theirs.pvalue)
    low, high = theirs.confidence_interval(0.9)
    assert (4 - found.half_width(0.1), 4 + found.half_width(0.1)) == pytest.approx((low, high))
    one_sided = [
        stats.ttest_ind([b - bound for b in B], A, equal_var=False, alternative=side).pvalue
        for bound, side in ((3.0, "greater"), (9.0, "less"))
    ]
    assert found.p_equivalence(3.0, 9.0) == pytest.approx(max(one_sided))


def test_one_arm_that_does_not_vary_has_the_other_arms_degrees_of_freedom():
    assert difference((2.0, 2.0, 2.0, 2.0), B).df == pytest.approx(2.0)


def test_arms_that_do_not_vary_differ_or_are_the_same():
    same, apart = difference((2.0,) * 3, (2.0,) * 3), difference((2.0,) * 3, (3.0,) * 3)
    assert (same.p(), apart.p()) == (1.0, 0.0)
    assert (same.p_equivalence(-1, 1), apart.p_equivalence(-1, 1)) == (0.0, 1.0)


def test_the_noise_floor_pools_what_there_is():
    assert noise_floor(A, B) == pytest.approx(math.sqrt(2 * (2 * 1 + 2 * 4) / 4))
    assert noise_floor((1.0,), B) == pytest.approx(math.sqrt(2) * 2)
    assert noise_floor((1.0,), ()) is None
