"""What goes into a comparison of two cells: values by launch, and what the campaign named before.

Not here  which points are barred (`load`), which launch pairs with which (`plan`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sgmatrix.core.errors import SgmatrixError

ALPHA = 0.05
"""Probability of any false better or worse in one comparison, over all load points and looks."""

PAIRS_NEEDED = 3
"""Two pairs have one degree of freedom: their 95 % interval is 12.7 standard errors wide."""

_LESS = {"ttft", "tpot", "itl", "e2e", "energy"}
_MORE = ("tok_s", "request_s", "good_share")

Value = float | None


@dataclass(frozen=True)
class Series:
    """One metric at one load point, by round.

    A round is a launch of each arm, side by side in time. Odd rounds run the baseline first,
    even rounds the variant: A B, B A, A B, … None is a value that is missing or barred.
    """

    load_id: str
    metric: str
    """Name of a column of `points`; it says whether less or more is better."""
    baseline: tuple[Value, ...]
    """Arm A; index 0 is round 1. Unit of the metric, > 0; goodput may be 0."""
    variant: tuple[Value, ...]
    """Arm B, as long as `baseline`."""
    aa: tuple[tuple[Value, Value], ...] = ()
    """Pairs of launches that are both of the baseline, by round; may be shorter or empty."""


@dataclass(frozen=True)
class Rules:
    """What the campaign named before the first launch.

    Raises:
        SgmatrixError: `comparison_rules` when a number is outside its range.
    """

    primary_load: str
    primary_metric: str
    bound_pct: float
    """x of `no difference larger than x %`; 0 < x < 100."""
    launches_min: int = 3
    """Launches of each arm before the first look; looks begin at 3, whatever is said here."""
    launches_budget: int = 5
    """Launches of each arm at most; equal to `launches_min`: a fixed number, one look."""

    def __post_init__(self) -> None:
        if not 0 < self.bound_pct < 100:
            raise SgmatrixError(
                "comparison_rules",
                f"bound_pct={self.bound_pct:g}, allowed 0 < bound_pct < 100",
                fix="name the smallest difference that matters to you, in percent",
            )
        if not 1 <= self.launches_min <= self.launches_budget:
            raise SgmatrixError(
                "comparison_rules",
                f"launches_min={self.launches_min}, launches_budget={self.launches_budget}, "
                "allowed 1 <= launches_min <= launches_budget",
                fix="raise the budget or lower the minimum",
            )


@lru_cache
def less_is_better(metric: str) -> bool:
    """Return True for latencies and energy, False for rates and shares of good requests.

    Raises:
        SgmatrixError: `metric_without_direction` for any other column.
    """
    if _LESS & set(metric.split("_")):
        return True
    if any(part in metric for part in _MORE):
        return False
    raise SgmatrixError(
        "metric_without_direction",
        f"{metric}: neither a latency, an energy nor a rate, so better and worse mean nothing",
        fix="compare ttft, tpot, itl, e2e, energy, tok_s, request_s or good_share columns",
    )


def may_be_zero(metric: str) -> bool:
    """Return True where 0 is a value like others: no request was a good one."""
    return "good" in metric


def primary_index(series: Sequence[Series], rules: Rules) -> int:
    """Return where the primary series stands; every series has been checked then.

    Raises:
        SgmatrixError: `comparison_values` when it is not there exactly once, when another one is
            there twice, when arms differ in length, or when a value is not a number > 0
            (goodput: >= 0);
            `metric_without_direction` when a metric has none.
    """
    keys = [(one.load_id, one.metric) for one in series]
    wanted = (rules.primary_load, rules.primary_metric)
    if wanted not in keys:
        raise SgmatrixError(
            "comparison_values",
            f"primary {wanted[1]} at {wanted[0]} is not among {len(keys)} series",
            fix="name a load point and a metric that the campaign measures",
        )
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise SgmatrixError(
            "comparison_values",
            f"{twice[1]} at {twice[0]} is given twice",
            fix="give each metric of each load point once",
        )
    for one in series:
        _check(one)
    return keys.index(wanted)


def _check(one: Series) -> None:
    less_is_better(one.metric)
    if len(one.baseline) != len(one.variant):
        raise SgmatrixError(
            "comparison_values",
            f"{one.metric} at {one.load_id}: {len(one.baseline)} values of the baseline, "
            f"{len(one.variant)} of the variant",
            fix="give one value per round and arm, None for a missing one",
        )
    for value in (*one.baseline, *one.variant, *(value for pair in one.aa for value in pair)):
        if value == 0 and may_be_zero(one.metric):
            continue
        if value is not None and not 0 < value < math.inf:
            raise SgmatrixError(
                "comparison_values",
                f"{one.metric} at {one.load_id}: {value}, allowed value > 0",
                fix="differences are taken on the log scale; give None for what was not measured",
            )
