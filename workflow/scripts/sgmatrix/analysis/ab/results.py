"""What comes out of a comparison: everything that the report shows.

Not here  any computation but the wording of a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass

from sgmatrix.analysis.ab.inputs import PAIRS_NEEDED
from sgmatrix.analysis.ab.judge import PAIRS_CAP, Verdict


@dataclass(frozen=True)
class Result:
    """One metric at one load point. Effects and intervals are in percent of the baseline."""

    load_id: str
    metric: str
    primary: bool
    pairs: int
    """Complete pairs that were used."""
    left_out: int
    """Rounds with a value missing or barred."""
    baseline_mean: float | None
    """Geometric mean over the complete pairs, in the metric's unit; None without a pair."""
    variant_mean: float | None
    """variant_mean / baseline_mean - 1 is the effect."""
    effect_pct: float | None
    interval_pct: tuple[float, float] | None
    """t interval at `confidence`; it agrees with the verdict. None where there is no verdict."""
    confidence: float | None
    """E.g. 0.957 for the primary load point of several at a single look; 0 to 1."""
    bootstrap_pct: tuple[float, float] | None
    """At the same confidence; None below 10 pairs. Decides nothing."""
    p: float | None
    """Two-sided t test of "no difference", as it stands."""
    p_adjusted: float | None
    """Over load points and looks: better or worse where <= 0.05."""
    p_equivalence_adjusted: float | None
    """Of "a difference of x % or more", likewise."""
    verdict: Verdict
    bound_pct: float
    more_launches: int | None
    """If undecided: further launches per arm that would decide; None: over the cap."""
    note: str
    """What qualifies the verdict; empty: nothing."""
    noise_floor_pct: float | None
    """Typical difference of two launches of the baseline; None without an A/A pair."""
    aa_pairs: int
    warning: str
    """What the A/A pair says against trusting the verdict; empty: nothing."""
    zeros: tuple[int, int] = (0, 0)
    """Complete pairs whose value is 0, of the baseline and of the variant."""

    @property
    def text(self) -> str:
        """The verdict in words."""
        match self.verdict:
            case Verdict.NO_DIFFERENCE:
                return f"no difference larger than {self.bound_pct:g} %"
            case Verdict.UNDECIDED if self.more_launches is None:
                return f"undecided (more than {PAIRS_CAP} launches per arm needed)"
            case Verdict.UNDECIDED:
                plural = "" if self.more_launches == 1 else "es"
                return f"undecided ({self.more_launches} more launch{plural} per arm needed)"
            case Verdict.NONE:
                return f"no verdict ({self._why_none()})"
            case _:
                return self.verdict.value

    def text_where(self, late: int) -> str:
        """The verdict in words, where so many rounds are older than the load point."""
        if not late or self.verdict is not Verdict.NONE or any(self.zeros):
            return self.text
        of = self.pairs + self.left_out
        return (
            f"no verdict (the load point was added after {late} of {of} rounds had been measured; "
            "its points there are of extra launches, which are no pairs; fix: give the campaign "
            "another name, so that each round has it)"
        )

    def _why_none(self) -> str:
        if any(self.zeros):
            return zeros_text(self.metric, self.zeros)
        if self.pairs == 0:
            return self._left_out_text() if self.left_out else "no launch of both arms"
        if self.pairs < PAIRS_NEEDED:
            few = "one launch per arm" if self.pairs == 1 else "two launches per arm"
            return f"{few}: {self._left_out_text()}" if self.left_out else few
        return f"{self.pairs} launches per arm, fewer than the campaign's minimum"

    def _left_out_text(self) -> str:
        rounds = self.pairs + self.left_out
        have = "has" if self.left_out == 1 else "have"
        return (
            f"{self.left_out} of {rounds} round{'' if rounds == 1 else 's'} {have} no value of "
            "both arms that may be compared"
        )


def zeros_text(metric: str, zeros: tuple[int, int]) -> str:
    """Return why values of 0 allow no verdict."""
    told = [
        f"in {count} launch{'' if count == 1 else 'es'} of the {arm}"
        for arm, count in zip(("baseline", "variant"), zeros, strict=True)
        if count
    ]
    return f"{metric} is 0 {' and '.join(told)}, and no change in percent is from or to 0"


@dataclass(frozen=True)
class Comparison:
    """Two cells at all load points, as of the look at which the comparison ended or stands."""

    results: tuple[Result, ...]
    """In the order of the series."""
    planned: int
    """Launches of each arm in the budget."""
    used: int
    """Launches of each arm that the results rest on, missing ones included."""
    look: int
    """Number of the look from 1; 0: before the first."""
    looks: int
    """Looks that were planned."""
    stop: bool
    """No further launch is needed, or none is left."""
    why: str


@dataclass(frozen=True)
class Decision:
    """Whether to go on after a round."""

    stop: bool
    why: str
    used: int
    """Launches of each arm at the look that this rests on."""
    planned: int
    look: int
