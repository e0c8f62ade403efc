"""Verdicts on load points of one cell in two campaigns."""

import math

import pytest
from scipy import stats

from sgmatrix.analysis.campaigns.judge import Arms, holm, judge

BASE = (100.0, 101.0, 102.0)


def verdicts(*others, metric="output_tok_s", bound=1.0):
    return [one.verdict.value for one in judge([Arms(BASE, o) for o in others], metric, bound)]


@pytest.mark.parametrize(
    ("other", "metric", "want"),
    [
        ((110.0, 111.0, 112.0), "output_tok_s", "better"),
        ((110.0, 111.0, 112.0), "tpot_ms_mean", "worse"),
        ((99.0, 101.0, 104.0), "output_tok_s", "undecided"),
        ((110.0, 111.0), "output_tok_s", "no_verdict"),
        ((), "output_tok_s", "no_verdict"),
    ],
)
def test_a_verdict(other, metric, want):
    assert verdicts(other, metric=metric) == [want]


def test_the_same_is_no_difference_within_a_bound_that_is_wide_enough():
    assert verdicts((100.0, 101.1, 102.0), bound=5.0) == ["no_difference"]


def test_the_interval_is_that_of_the_logs_and_agrees_with_the_verdict():
    (found,) = judge([Arms(BASE, (110.0, 111.0, 112.0))], "output_tok_s", 1.0)

    logs = [[math.log(one) for one in arm] for arm in ((110.0, 111.0, 112.0), BASE)]
    low, high = stats.ttest_ind(*logs, equal_var=False).confidence_interval(1 - 0.05 * 0.9)
    assert found.interval_percent == pytest.approx((100 * math.expm1(low), 100 * math.expm1(high)))
    assert found.interval_percent[0] > 0
    assert found.confidence == pytest.approx(0.955)
    mean = (110 * 111 * 112 / (100 * 101 * 102)) ** (1 / 3)
    assert found.effect_percent == pytest.approx(100 * (mean - 1))


def test_a_load_point_alone_says_more_than_one_among_many():
    clear, vague = (110.0, 111.0, 112.0), (102.9, 104.0, 105.3)
    assert verdicts(vague) == ["better"]
    assert verdicts(vague, *[BASE] * 5) == ["undecided"] + ["undecided"] * 5
    assert verdicts(clear, *[BASE] * 5)[0] == "better"


def test_holm_by_hand():
    # 3 x 0.01; then 2 x 0.02 is rejected; 0.2 is not, at all of alpha
    assert holm([0.2, 0.01, None, 0.02]) == [
        pytest.approx((0.2, 1.0)),
        pytest.approx((0.03, 1 / 3)),
        None,
        pytest.approx((0.04, 1 / 2)),
    ]
    # 2 x 0.04 is not rejected: what follows keeps its weight, and no smaller p
    assert holm([0.04, 0.045]) == [pytest.approx((0.08, 0.5)), pytest.approx((0.08, 0.5))]
