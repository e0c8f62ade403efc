"""Decide a comparison after each round, and conclude it.

Both answers depend on the values of the first rounds only. They walk the looks from the first one
and end at the first that decides the primary load point, so a later round cannot undo a stop and
the same question gets the same answer weeks later.

Not here  any I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sgmatrix.analysis.ab.bootstrap import bootstrap
from sgmatrix.analysis.ab.inputs import Rules, Series, primary_index
from sgmatrix.analysis.ab.judge import DECIDED, Judged, Verdict, judge, unjudged
from sgmatrix.analysis.ab.looks import Look, looks_of
from sgmatrix.analysis.ab.noise import Noise, noise_of, warning_of
from sgmatrix.analysis.ab.pairs import percent
from sgmatrix.analysis.ab.results import Comparison, Decision, Result
from sgmatrix.analysis.ab.student import half_width


@dataclass(frozen=True)
class _State:
    judged: list[Judged]
    primary: int
    used: int
    look: Look | None
    looks: int
    stop: bool
    why: str


def decision(series: Sequence[Series], rules: Rules, rounds: int) -> Decision:
    """Return whether the comparison may stop after `rounds` finished rounds.

    Args:
        series: every metric of every load point; only the first `rounds` values count.
        rules: what the campaign named.
        rounds: rounds whose two launches are over, failed ones included.

    Raises:
        SgmatrixError: as `inputs.primary_index`.
    """
    state = _walk(series, rules, rounds)
    number = state.look.number if state.look else 0
    return Decision(state.stop, state.why, state.used, rules.launches_budget, number)


def conclude(series: Sequence[Series], rules: Rules, rounds: int | None = None) -> Comparison:
    """Return everything that is known after `rounds` rounds; None: as many as there are values.

    After a stop, the values of later rounds are not used.

    Raises:
        SgmatrixError: as `inputs.primary_index`.
    """
    if rounds is None:
        rounds = max((len(one.baseline) for one in series), default=0)
    state = _walk(series, rules, rounds)
    return Comparison(
        results=tuple(
            _result(one, judged, noise, rules, primary=place == state.primary)
            for place, (one, judged, noise) in enumerate(
                zip(series, state.judged, noise_of(series, state.used), strict=True)
            )
        ),
        planned=rules.launches_budget,
        used=state.used,
        look=state.look.number if state.look else 0,
        looks=state.looks,
        stop=state.stop,
        why=state.why,
    )


def _walk(series: Sequence[Series], rules: Rules, rounds: int) -> _State:
    primary = primary_index(series, rules)
    done, budget = min(rounds, rules.launches_budget), rules.launches_budget
    looks = looks_of(rules)
    look, judged = None, []
    for one in looks:
        if one.rounds > done:
            break
        look, judged = one, judge(series, primary, rules, one)
        verdict = judged[primary].verdict
        if verdict in DECIDED:
            why = f"{rules.primary_load}: {verdict.value.replace('_', ' ')} at look {one.number}"
            return _State(judged, primary, one.rounds, one, len(looks), True, why)
    stop = done == budget
    if stop:
        why = f"the budget of {budget} launches per arm is used"
    elif look is None:
        why = f"the first look is after {looks[0].rounds if looks else budget} launches per arm"
    else:
        why = f"{rules.primary_load} is not decided after {done} of {budget} launches per arm"
    return _State(judged or unjudged(series, done), primary, done, look, len(looks), stop, why)


def _result(one: Series, judged: Judged, noise: Noise, rules: Rules, *, primary: bool) -> Result:
    pairs, of, level = judged.pairs, judged.spread, judged.level
    values = pairs.differences
    interval = boot = None
    if of is not None and level is not None:
        half = half_width(of.sd, of.n, level)
        interval = (percent(of.mean - half), percent(of.mean + half))
        drawn = bootstrap(values, level)
        boot = drawn and (percent(drawn[0]), percent(drawn[1]))
    needed = judged.pairs_needed
    return Result(
        load_id=one.load_id,
        metric=one.metric,
        primary=primary,
        pairs=len(values),
        left_out=pairs.left_out,
        baseline_mean=pairs.baseline_mean,
        variant_mean=pairs.variant_mean,
        effect_pct=percent(sum(values) / len(values)) if values else None,
        interval_pct=interval,
        confidence=None if level is None else 1 - level,
        bootstrap_pct=boot,
        p=judged.p,
        p_adjusted=judged.p_adjusted,
        p_equivalence_adjusted=judged.p_equivalence_adjusted,
        verdict=judged.verdict,
        bound_pct=rules.bound_pct,
        more_launches=None if needed is None else needed - len(values),
        note=_note(judged, rules, interval),
        noise_floor_pct=noise.floor_pct,
        aa_pairs=noise.pairs,
        warning=warning_of(noise, judged),
        zeros=pairs.zeros,
    )


def _note(judged: Judged, rules: Rules, interval: tuple[float, float] | None) -> str:
    said = []
    if (
        judged.verdict in {Verdict.BETTER, Verdict.WORSE}
        and interval is not None
        and -rules.bound_pct < interval[0]
        and interval[1] < rules.bound_pct
    ):
        said.append(f"smaller than the {rules.bound_pct:g} % that the campaign calls relevant")
    if not judged.pairs.balanced:
        said.append("pairs left out make one arm run first more often: drift does not cancel")
    if judged.spread is not None and judged.spread.n > 2 and judged.spread.sd == 0:
        said.append("every pair shows the same difference: look whether the values are real")
    return "; ".join(said)
