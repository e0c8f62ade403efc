import math

import pytest

from sgmatrix.analysis.ab.student import (
    Spread,
    half_width,
    p_difference,
    p_equivalence,
    quantile,
    spread,
)

THREE = spread([0.01, 0.02, 0.03])


@pytest.mark.parametrize(
    ("df", "want"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262)],  # printed tables, 0.975
)
def test_quantiles_are_those_of_printed_tables(df, want):
    assert quantile(0.025, df) == pytest.approx(want, abs=5e-4)


def test_three_differences_by_hand():
    assert (THREE.n, THREE.mean) == (3, pytest.approx(0.02))
    assert THREE.sd == pytest.approx(0.01)  # squares 1e-4, 0, 1e-4 over 2
    # 4.3027 x 0.01 / sqrt(3)
    assert half_width(THREE.sd, 3, 0.05) == pytest.approx(0.024842, abs=1e-6)


def test_p_of_three_differences_by_hand():
    # t = 0.02 / (0.01 / sqrt 3) = sqrt 12; for two degrees of freedom p = 1 - t / sqrt(t^2 + 2).
    assert p_difference(THREE) == pytest.approx(1 - math.sqrt(12 / 14))


def test_two_one_sided_tests_by_hand():
    of = spread([-0.001, 0.0, 0.001])
    low, high = math.log(0.99), math.log(1.01)
    # The nearer bound is +1 %: t = 0.00995033 / (0.001 / sqrt 3) = 17.2345, p = half of the above.
    t = 17.2345

    assert p_equivalence(of, low, high) == pytest.approx((1 - t / math.sqrt(t * t + 2)) / 2, 1e-4)


def test_a_mean_outside_the_bound_is_never_equivalent():
    assert p_equivalence(Spread(5, 0.03, 0.001), -0.02, 0.02) > 0.99


@pytest.mark.parametrize(
    ("values", "differ", "equal"),
    [([0.0] * 3, 1.0, 0.0), ([0.01] * 3, 0.0, 0.0), ([0.05] * 3, 0.0, 1.0)],
)
def test_values_without_spread_are_taken_as_exact(values, differ, equal):
    of = spread(values)

    assert of.sd == 0
    assert p_difference(of) == differ
    assert p_equivalence(of, -0.02, 0.02) == equal


def test_rounding_is_no_spread():
    of = spread([0.1 + 0.2, 0.3, 0.3])

    assert (0.1 + 0.2) != 0.3
    assert of.sd == 0
