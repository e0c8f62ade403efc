"""What two launches of the same cell differ by: the ruler beside every difference.

The true difference of an A/A pair is 0, so its noise floor is the root mean square of its log
differences: the difference that two launches of one configuration typically show. It holds their
spread and a bias between first and second place alike, and one pair is enough to have it.
A floor never changes a verdict: the mean of many pairs can be known better than one pair. It
tells the reader when a difference will not be seen by starting each server once.

Not here  verdicts (`judge`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sgmatrix.analysis.ab.inputs import ALPHA, PAIRS_NEEDED, Series
from sgmatrix.analysis.ab.judge import Judged, Verdict
from sgmatrix.analysis.ab.pairs import log_ratios, percent
from sgmatrix.analysis.ab.student import p_difference, spread


@dataclass(frozen=True)
class Noise:
    """The A/A pairs of one load point."""

    pairs: int
    floor_pct: float | None
    """None without a complete A/A pair."""
    differs_pct: float | None
    """Their mean difference, where it is significant (Holm over the load points), else None."""
    p_adjusted: float | None
    """None below three pairs."""


def noise_of(series: Sequence[Series], rounds: int) -> list[Noise]:
    """Return the noise of each series, from the A/A pairs of its first `rounds` rounds.

    All load points are tested together by Holm, so that a sound machine is suspected in at most
    5 % of all comparisons.
    """
    differences = [log_ratios(one.aa[:rounds]) for one in series]
    spreads = [spread(one) if len(one) >= PAIRS_NEEDED else None for one in differences]
    adjusted = _holm([None if one is None else p_difference(one) for one in spreads])
    found = []
    for values, of, p in zip(differences, spreads, adjusted, strict=True):
        floor = None
        if values:
            floor = percent(math.sqrt(math.fsum(one * one for one in values) / len(values)))
        differs = None
        if of is not None and p is not None and p <= ALPHA:
            differs = percent(of.mean)
        found.append(Noise(len(values), floor, differs, p))
    return found


def warning_of(noise: Noise, judged: Judged) -> str:
    """Return what a reader must know before trusting the verdict; empty: nothing."""
    said = []
    if noise.differs_pct is not None:
        said.append(
            f"the A/A pair differs by {noise.differs_pct:+.2g} % (p = {noise.p_adjusted:.2g}): "
            "something other than the configuration moves this load point"
        )
    if noise.floor_pct is not None and judged.verdict in {
        Verdict.BETTER,
        Verdict.WORSE,
        Verdict.UNDECIDED,
    }:
        assert judged.spread is not None, "a verdict has a spread"
        effect_pct = percent(abs(judged.spread.mean))
        if effect_pct <= noise.floor_pct:
            said.append(
                f"the effect is not larger than what two launches of the baseline typically "
                f"differ by ({noise.floor_pct:.2g} %)"
            )
    return "; ".join(said)


def _holm(p: Sequence[float | None]) -> list[float | None]:
    order = sorted((one, i) for i, one in enumerate(p) if one is not None)
    adjusted: list[float | None] = [None] * len(p)
    floor = 0.0
    for place, (one, i) in enumerate(order):
        floor = max(floor, min(1.0, one * (len(order) - place)))
        adjusted[i] = floor
    return adjusted
