"""A campaign's comparisons, from its points: what is concluded, and whether a launch is needed.

A launch asks before it starts, the report asks at the end; both answers rest on the same values,
so that a comparison that stopped early says in the report what stopped it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sgmatrix.analysis.ab.compare import conclude, decision
from sgmatrix.analysis.ab.inputs import PAIRS_NEEDED, Rules, Series, may_be_zero
from sgmatrix.analysis.ab.pairs import pairs_of
from sgmatrix.analysis.ab.results import Comparison, zeros_text
from sgmatrix.analysis.side_by_side import Lookup, Row, rounds_apart
from sgmatrix.core.flags import Kind, is_barred
from sgmatrix.core.reasons import NOT_NEEDED

Place = tuple[str, str, str]
"""(cell, launch, load id)."""


def compared_kind(metric: str) -> Kind:
    """Return which kind of comparison a metric is: flags bar one, both, or none."""
    rates = ("tok_s", "request_s", "energy")
    return "throughput" if any(part in metric for part in rates) else "latency"


def value_of(row: Row | None, metric: str) -> float | None:
    """Return a value that may be compared; None where it is missing or barred."""
    if row is None or row.get("status") != "ok":
        return None
    if is_barred(row, compared_kind(metric)):
        return None
    value = row.get(metric)
    if value == 0 and may_be_zero(metric):
        return 0.0  # no request was good: measured, and nothing that may be left out
    return float(value) if value is not None and 0 < value < math.inf else None


def rules_of(planned: Row) -> Rules:
    """Return the rules of a comparison of `plan.json`."""
    return Rules(
        primary_load=planned["primary"],
        primary_metric=planned["metric"],
        bound_pct=planned["bound_percent"],
        launches_min=planned["least"],
        launches_budget=planned["most"],
    )


def planned_keys(plan: Row) -> dict[tuple[str, str, str], str]:
    """Return (cell, launch, load id) to the key of the point that `plan.json` asks for."""
    return {
        (launch["cell"], launch["launch"], point["load_id"]): point["key"]
        for launch in plan["launches"]
        for point in launch["points"]
    }


def series_of(planned: Row, find: Lookup, rounds: int) -> tuple[Series, ...]:
    """Return the values of a comparison's first rounds, one series per load point.

    Rounds whose arms were not measured side by side have none.
    """
    apart = rounds_apart(planned, find, rounds)
    noise_apart = rounds_apart(planned, find, rounds, ("baseline", "noise"))

    def values(arm: str, load: str, without: Container[int]) -> tuple[float | None, ...]:
        cell = planned["variant" if arm == "variant" else "baseline"]
        return tuple(
            None if number in without else value_of(find(cell, one[arm], load), planned["metric"])
            for number, one in enumerate(planned["rounds"][:rounds])
        )

    return tuple(
        Series(
            load_id=load,
            metric=planned["metric"],
            baseline=values("baseline", load, apart),
            variant=values("variant", load, apart),
            aa=tuple(
                zip(*(values(arm, load, noise_apart) for arm in ("baseline", "noise")), strict=True)
            )
            if planned["noise_pair"]
            else (),
        )
        for load in planned["loads"]
    )


def finished_rounds(planned: Row, find: Lookup) -> int:
    """Return the rounds from the first one on whose launches all have a point at some load."""

    def is_over(one: Mapping[str, str]) -> bool:
        arms = [(planned["baseline"], one["baseline"]), (planned["variant"], one["variant"])]
        return all(
            any(_is_over(find(cell, launch, load)) for load in planned["loads"])
            for cell, launch in arms
        )

    return sum(1 for _ in itertools.takewhile(is_over, planned["rounds"]))


def _is_over(row: Row | None) -> bool:
    """Tell whether a point was measured, or its launch failed; not one that was not needed."""
    if row is None or row["status"] == "not_run":
        return False
    return row["status"] != "skipped" or row.get("reason") != NOT_NEEDED


def why_not_needed(compared: Iterable[Row], launch: Row, find: Lookup) -> str | None:
    """Return why a launch is not needed; None where it is.

    Args:
        compared: `comparisons` of `plan.json`.
        launch: the launch of `plan.json`, whose `condition` names comparisons.
        find: the points that are there.
    """
    names = launch["condition"]["comparisons"]
    whys = []
    for planned in compared:
        if planned["name"] not in names:
            continue
        before = _round_of(planned, launch["cell"], launch["launch"]) - 1
        series = series_of(planned, find, before)
        found = decision(series, rules_of(planned), before)
        hopeless = _hopeless(planned, series, before)
        if not found.stop and hopeless is None:
            return None
        whys.append(f"{planned['name']}: {hopeless or found.why}")
    return "; ".join(whys)


def _hopeless(planned: Row, series: Sequence[Series], done: int) -> str | None:
    """Return why no further round can bring a verdict; None where it can."""
    primary = next(one for one in series if one.load_id == planned["primary"])
    zeros = pairs_of(primary, done).zeros
    if any(zeros):
        return f"it cannot be decided any more: {zeros_text(primary.metric, zeros)}"
    pairs = sum(None not in pair for pair in zip(primary.baseline, primary.variant, strict=True))
    if pairs + planned["most"] - done >= PAIRS_NEEDED:
        return None
    return f"it cannot be decided any more: {pairs} pairs of values after {done} rounds"


def _round_of(planned: Row, cell: str, launch: str) -> int:
    for number, one in enumerate(planned["rounds"], 1):
        for arm, name in one.items():
            arm_cell = planned["variant" if arm == "variant" else "baseline"]
            if (arm_cell, name) == (cell, launch):
                return number
    raise ValueError(f"{cell}, launch {launch}, is in no round of {planned['name']}")


def concluded(planned: Row, find: Lookup) -> Comparison:
    """Return what the finished rounds of a comparison say."""
    rounds = finished_rounds(planned, find)
    return conclude(series_of(planned, find, rounds), rules_of(planned), rounds)


def rounds_without(planned: Row, load: str, asked: Container[Place], rounds: int) -> int:
    """Return in how many of the first rounds an arm was measured before a load point was added.

    Such a point is of an extra launch, which is no repetition: these rounds never have its pair.

    Args:
        planned: the comparison, of `plan.json`.
        load: id of the load point.
        asked: (cell, launch, load id) of the points that the plan asks for.
        rounds: how many.
    """
    return sum(
        any((planned[arm], one[arm], load) not in asked for arm in ("baseline", "variant"))
        for one in planned["rounds"][:rounds]
    )


def _alone_text(apart: int, of: int) -> str:
    if not apart:
        return ""
    return (
        f"{apart} of {of} rounds were not measured side by side, as where one arm was repeated "
        "alone: a larger launches.max measures further rounds"
    )


def comparison_rows(
    campaign: str,
    compared: Sequence[Row],
    points: Iterable[Row],
    asked: Container[Place] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table `comparisons`.

    Args:
        campaign: its name.
        compared: `comparisons` of `plan.json`.
        points: rows of `points`; only the current ones count.
        asked: (cell, launch, load id) of the points that the plan asks for; None: all.
    """
    current = {
        (row["cell"], row["launch"], row["load_id"]): row for row in points if row["current"]
    }

    def find(cell: str, launch: str, load: str) -> Row | None:
        return current.get((cell, launch, load))

    for planned in compared:
        made = concluded(planned, find)
        apart = rounds_apart(planned, find, finished_rounds(planned, find))
        alone = _alone_text(sum(number < made.used for number in apart), made.used)
        for one in made.results:
            low, high = one.interval_pct or (None, None)
            late = (
                rounds_without(planned, one.load_id, asked, made.used) if asked is not None else 0
            )
            boot_low, boot_high = one.bootstrap_pct or (None, None)
            yield {
                "campaign": campaign,
                "comparison": planned["name"],
                "baseline": planned["baseline"],
                "variant": planned["variant"],
                "metric": one.metric,
                "load_id": one.load_id,
                "primary": one.primary,
                "verdict": one.verdict.value,
                "verdict_text": one.text_where(late),
                "effect_percent": one.effect_pct,
                "interval_low_percent": low,
                "interval_high_percent": high,
                "confidence": one.confidence,
                "bootstrap_low_percent": boot_low,
                "bootstrap_high_percent": boot_high,
                "p": one.p,
                "p_adjusted": one.p_adjusted,
                "p_equivalence_adjusted": one.p_equivalence_adjusted,
                "bound_percent": one.bound_pct,
                "pairs": one.pairs,
                "left_out": one.left_out,
                "baseline_mean": one.baseline_mean,
                "variant_mean": one.variant_mean,
                "noise_floor_percent": one.noise_floor_pct,
                "noise_pairs": one.aa_pairs,
                "more_launches": one.more_launches,
                "note": one.note or None,
                "warning": "; ".join(text for text in (alone, one.warning) if text) or None,
                "launches_planned": made.planned,
                "launches_used": made.used,
                "looks_planned": made.looks,
                "look": made.look,
                "stopped": made.stop,
                "why": made.why,
            }
