"""The order of trials, and which of them count.

Every round tries every client at every number of streams; the order turns from round to round,
so that no client always comes first. A trial that was disturbed is refused and repeated, a few
times at most; what is refused is never in a median, and always counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from perf.lockstep.trial import Trial
from sgmatrix.core.errors import SgmatrixError

Case = TypeVar("Case")
TRIES = 3


@dataclass
class Series:
    """The trials of one case: a client at a number of streams, or beside a neighbour."""

    trials: list[Trial] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Why; one text for each trial that does not count."""


def why_refused(trial: Trial, foreign_max: float) -> str | None:
    """Return what disturbed a trial; None where nothing did.

    Args:
        trial: what was measured.
        foreign_max: cores that others may use on average. The load average is no measure of
            that: it counts the bench's own clients, for minutes after they have ended.
    """
    if trial.missed_ticks:
        return f"{trial.missed_ticks} missed ticks, the longest took {trial.longest_tick_ms:.0f} ms"
    if trial.foreign_cores > foreign_max:
        return f"others used {trial.foreign_cores:.2f} cores"
    return None


def turned(cases: Sequence[Case], by: int) -> Iterator[Case]:
    """Yield all cases, the first `by` of them last."""
    by %= len(cases)
    yield from [*cases[by:], *cases[:by]]


def measure(
    cases: Sequence[Case],
    rounds: int,
    run: Callable[[Case], Trial],
    *,
    foreign_max: float,
    tell: Callable[[str], None],
) -> dict[Case, Series]:
    """Try every case once a round.

    Args:
        cases: what is measured.
        rounds: how often.
        run: makes one trial.
        foreign_max: see `why_refused`.
        tell: is told of each trial.
    """
    found = {case: Series() for case in cases}
    for number in range(rounds):
        for case in turned(cases, number):
            for _ in range(TRIES):
                try:
                    trial = run(case)
                    why = why_refused(trial, foreign_max)
                except SgmatrixError as error:
                    why = str(error)
                else:
                    if why is None:
                        found[case].trials.append(trial)
                        tell(f"round {number + 1}: {case}: {trial.errors}")
                        break
                found[case].refused.append(why)
                tell(f"round {number + 1}: {case}: refused: {why}")
    return found
