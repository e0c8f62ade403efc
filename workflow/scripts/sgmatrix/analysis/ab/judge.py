"""What the differences of each load point say at one look.

Better or worse: the t test of "no difference", adjusted over the load points, is at most the level.
No difference larger than x %: two one-sided tests against -x % and +x %, adjusted in the same way
but in a family of their own. Difference goes first. Everything else is undecided.

Not here  when to look (`looks`), what the reader sees (`results`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sgmatrix.analysis.ab.family import Share, shares
from sgmatrix.analysis.ab.inputs import ALPHA, PAIRS_NEEDED, Rules, Series, less_is_better
from sgmatrix.analysis.ab.looks import Look, looks_of
from sgmatrix.analysis.ab.pairs import Pairs, pairs_of
from sgmatrix.analysis.ab.student import (
    Spread,
    half_width,
    p_difference,
    p_equivalence,
    spread,
)

PAIRS_CAP = 100
"""More pairs than these are never asked for by number: nobody starts 200 servers for a cell."""


class Verdict(StrEnum):
    """What is claimed of the variant at one load point."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no_difference"
    UNDECIDED = "undecided"
    NONE = "no_verdict"


DECIDED = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.NO_DIFFERENCE})


@dataclass(frozen=True)
class Judged:
    """One load point at one look; p values and level are None where there is no verdict."""

    verdict: Verdict
    pairs: Pairs
    spread: Spread | None
    """Of the log differences; None below two pairs."""
    p: float | None = None
    """Two-sided, of "no difference", as it stands."""
    p_adjusted: float | None = None
    """Over load points and looks; to be compared with `ALPHA`."""
    p_equivalence_adjusted: float | None = None
    """Of "a difference of x % or more", in the same way."""
    level: float | None = None
    """The (1 - level) t interval is the one that agrees with the verdict."""
    pairs_needed: int | None = None
    """If undecided: total of pairs that would decide as things look; None: over the cap."""


def judge(series: Sequence[Series], primary: int, rules: Rules, look: Look) -> list[Judged]:
    """Return a verdict for each series from its first `look.rounds` rounds, in order."""
    pairs = [pairs_of(one, look.rounds) for one in series]
    spreads = [_spread(one) for one in pairs]
    low, high = bounds(rules.bound_pct)
    enough = [one if one is not None and one.n >= PAIRS_NEEDED else None for one in spreads]
    differ = [None if one is None else p_difference(one) for one in enough]
    equal = [None if one is None else p_equivalence(one, low, high) for one in enough]
    by_difference = shares(_over_looks(differ, look), primary, ALPHA)
    by_equality = shares(_over_looks(equal, look), primary, ALPHA)
    return [
        _judged(which, one, of, p, by_difference[i], by_equality[i], rules, look)
        for i, (which, one, of, p) in enumerate(zip(series, pairs, spreads, differ, strict=True))
    ]


def unjudged(series: Sequence[Series], rounds: int) -> list[Judged]:
    """Return what can be said before the first look: values, and no verdict."""
    pairs = [pairs_of(one, rounds) for one in series]
    return [Judged(Verdict.NONE, one, _spread(one)) for one in pairs]


def bounds(bound_pct: float) -> tuple[float, float]:
    """Return -x % and +x % on the log scale."""
    return math.log1p(-bound_pct / 100), math.log1p(bound_pct / 100)


def _spread(pairs: Pairs) -> Spread | None:
    return spread(pairs.differences) if len(pairs.differences) > 1 else None


def _over_looks(p: Sequence[float | None], look: Look) -> list[float | None]:
    """A p divided by the look's part of alpha is a p for all looks together (Bonferroni)."""
    return [None if one is None else one / look.share for one in p]


def _judged(
    series: Series,
    pairs: Pairs,
    of: Spread | None,
    p: float | None,
    differ: Share | None,
    equal: Share | None,
    rules: Rules,
    look: Look,
) -> Judged:
    if of is None or differ is None or equal is None:
        return Judged(Verdict.NONE, pairs, of)
    level = ALPHA * look.share * differ.weight
    level_equal = 2 * ALPHA * look.share * equal.weight
    needed = None
    if differ.p_adjusted <= ALPHA:
        verdict = (
            Verdict.BETTER if (of.mean < 0) == less_is_better(series.metric) else Verdict.WORSE
        )
    elif equal.p_adjusted <= ALPHA:
        verdict, level = Verdict.NO_DIFFERENCE, level_equal
    else:
        verdict = Verdict.UNDECIDED
        # Further launches are judged at a last look, which has more of alpha than an early one.
        more = looks_of(rules)[-1].share / look.share
        needed = pairs_needed(of, more * level, more * level_equal, bounds(rules.bound_pct))
    return Judged(
        verdict,
        pairs,
        of,
        p,
        min(1.0, differ.p_adjusted),
        min(1.0, equal.p_adjusted),
        level,
        needed,
    )


def pairs_needed(
    of: Spread, level: float, level_equal: float, bound: tuple[float, float]
) -> int | None:
    """Return the least total of pairs whose interval would decide at this mean and this spread.

    It decides when its half width is below the mean (a difference) or when it lies within the
    bound. At exactly that many pairs the odds are about even, since mean and spread are themselves
    estimates; None when it takes more than `PAIRS_CAP`.
    """
    room = min(of.mean - bound[0], bound[1] - of.mean)

    def decides(n: int) -> bool:
        if half_width(of.sd, n, level) < abs(of.mean):
            return True
        return half_width(of.sd, n, level_equal) < room

    if of.n >= PAIRS_CAP or not decides(PAIRS_CAP):
        return None
    low, high = of.n, PAIRS_CAP  # half widths shrink with n: the answer is in (low, high]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    return high
