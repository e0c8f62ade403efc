import math

import pytest

from sgmatrix.analysis.ab.inputs import Rules, Series, less_is_better, primary_index
from sgmatrix.core.errors import SgmatrixError

RULES = Rules("c1", "ttft_ms_mean", 1.0)
GOOD = Series("c1", "ttft_ms_mean", (1.0,), (2.0,))


@pytest.mark.parametrize(
    ("metric", "less"),
    [
        ("ttft_ms_p99", True),
        ("tpot_ms_mean", True),
        ("itl_ms_p50", True),
        ("e2e_ms_p99", True),
        ("energy_j_per_output_tok", True),
        ("output_tok_s", False),
        ("output_tok_s_per_gpu", False),
        ("tok_s_per_user", False),
        ("goodput_request_s", False),
        ("good_share", False),
    ],
)
def test_direction_of_every_kind_of_metric(metric, less):
    assert less_is_better(metric) is less


def test_a_metric_without_direction_is_refused_by_name():
    with pytest.raises(SgmatrixError, match="power_w_mean") as caught:
        less_is_better("power_w_mean")

    assert caught.value.code == "metric_without_direction"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"bound_pct": 0}, "bound_pct=0"),
        ({"bound_pct": 100}, "bound_pct=100"),
        ({"bound_pct": math.nan}, "bound_pct=nan"),
        ({"bound_pct": 1, "launches_min": 4, "launches_budget": 3}, "launches_min=4"),
        ({"bound_pct": 1, "launches_min": 0}, "launches_min=0"),
    ],
)
def test_rules_out_of_range_name_the_number(values, text):
    with pytest.raises(SgmatrixError, match=text) as caught:
        Rules("c1", "ttft_ms_mean", **values)

    assert caught.value.code == "comparison_rules"


@pytest.mark.parametrize(
    ("series", "text"),
    [
        ([], "ttft_ms_mean at c1 is not among 0"),
        ([GOOD, GOOD], "ttft_ms_mean at c1 is given twice"),
        ([GOOD, Series("c2", "output_tok_s", (1.0,), ())], "c2: 1 values of the baseline, 0"),
        ([GOOD, Series("c2", "output_tok_s", (0.0,), (1.0,))], "c2: 0.0, allowed"),
        ([GOOD, Series("c2", "output_tok_s", (1.0,), (math.nan,))], "c2: nan, allowed"),
        ([GOOD, Series("c2", "output_tok_s", (1.0,), (math.inf,))], "c2: inf, allowed"),
        ([GOOD, Series("c2", "output_tok_s", (), (), ((1.0, -1.0),))], "c2: -1.0, allowed"),
    ],
)
def test_wrong_values_are_refused_with_load_point_and_value(series, text):
    with pytest.raises(SgmatrixError, match=text) as caught:
        primary_index(series, RULES)

    assert caught.value.code == "comparison_values"


def test_the_primary_is_found_by_load_point_and_metric():
    other = Series("c1", "output_tok_s", (1.0,), (None,))

    assert primary_index([other, GOOD], RULES) == 1
