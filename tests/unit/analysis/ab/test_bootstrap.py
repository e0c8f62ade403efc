import numpy as np
import pytest

from sgmatrix.analysis.ab.bootstrap import bootstrap, interval
from sgmatrix.analysis.ab.compare import conclude
from sgmatrix.analysis.ab.inputs import Rules, Series


def test_nine_pairs_are_too_few():
    assert bootstrap([0.01] * 9, 0.05) is None
    assert bootstrap([0.01] * 10, 0.05) == pytest.approx((0.01, 0.01))


def test_many_normal_values_give_the_normal_interval():
    values = np.random.default_rng(1).normal(0.02, 0.01, 400)
    half = 1.96 * values.std() / 20

    low, high = interval(values, 0.05)

    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=5e-5)


def test_three_different_values_reach_no_further_than_themselves():
    # All three draws the same value in 1 of 27 resamples each: beyond the 2.5 % at either end.
    assert interval([0.0, 0.5, 1.0], 0.05) == pytest.approx((0.0, 1.0))


def test_it_is_shown_beside_the_deciding_interval_and_is_the_same_each_time():
    variant = tuple(100 + 0.1 * x for x in range(10))
    given = [Series("c1", "output_tok_s", (100.0,) * 10, variant)]
    rules = Rules("c1", "output_tok_s", 2.0, 10, 10)

    (one,), (two,) = conclude(given, rules).results, conclude(given, rules).results

    assert one == two
    assert one.interval_pct[0] < one.bootstrap_pct[0] < one.effect_pct < one.bootstrap_pct[1]
