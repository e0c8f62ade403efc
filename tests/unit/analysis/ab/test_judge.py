import math

import pytest

from sgmatrix.analysis.ab.judge import bounds, pairs_needed
from sgmatrix.analysis.ab.student import Spread


def test_bounds_are_the_percentages_on_the_log_scale():
    assert bounds(25.0) == pytest.approx((math.log(0.75), math.log(1.25)))


@pytest.mark.parametrize(
    ("mean", "want"),
    [
        # A difference: 3.182 x 0.008 / 2 = 0.0127 is not below 0.012 with four pairs;
        # 2.776 x 0.008 / sqrt 5 = 0.0099 is with five.
        (0.012, 5),
        (-0.012, 5),
        # No difference: the nearer bound is 0.009 away. 2.353 x 0.008 / 2 = 0.0094 is too wide
        # with four pairs, 2.132 x 0.008 / sqrt 5 = 0.0076 is not with five.
        (0.001, 5),
        (-0.001, 5),
        # Then 0.010 away, which four pairs reach.
        (0.0, 4),
        # Near the bound, so a difference: 2.571 x 0.008 / sqrt 6 = 0.0084, then 2.447 x 0.008 /
        # sqrt 7 = 0.0074.
        (0.0083, 7),
    ],
)
def test_pairs_needed_by_printed_tables(mean, want):
    assert pairs_needed(Spread(3, mean, 0.008), 0.05, 0.10, (-0.010, 0.010)) == want
