"""The table `comparison`: one row per cell, load point and metric of two campaigns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sgmatrix.analysis.ab.inputs import PAIRS_NEEDED
from sgmatrix.analysis.ab.judge import Verdict
from sgmatrix.analysis.campaigns.judge import Arms, Judged, judge
from sgmatrix.analysis.campaigns.match import Match, Matched
from sgmatrix.analysis.campaigns.provenance import reported
from sgmatrix.analysis.compared import value_of
from sgmatrix.dataset.results import Results, Row

METRICS = ("output_tok_s", "tpot_ms_mean", "ttft_ms_mean")


def comparison_rows(
    base: Results, other: Results, found: Match, bound_percent: float
) -> list[dict[str, Any]]:
    """Return the rows, by metric, cell and load as in the base's plan."""
    rows = []
    for metric in METRICS:
        for cell in found.cells:
            points = [one for one in found.points if one.cell == cell]
            arms = [Arms(_values(one.base, metric), _values(one.other, metric)) for one in points]
            judged = judge(arms, metric, bound_percent)
            for point, values, said in zip(points, arms, judged, strict=True):
                row = _row(point, values, said, (base.label, other.label), bound_percent)
                versions = [reported(one, "engine_version", cell) for one in (base, other)]
                rows.append(
                    {
                        **row,
                        "base": base.label,
                        "other": other.label,
                        "metric": metric,
                        "base_engine_version": versions[0],
                        "other_engine_version": versions[1],
                    }
                )
    return rows


def _values(rows: Sequence[Row], metric: str) -> tuple[float, ...]:
    return tuple(value for row in rows if (value := value_of(row, metric)) is not None)


def _row(
    point: Matched, arms: Arms, said: Judged, labels: tuple[str, str], bound: float
) -> dict[str, Any]:
    interval = said.interval_percent or (None, None)
    known = (*point.base, *point.other)
    return {
        "cell": point.cell,
        "load_id": point.load_id,
        "concurrency": known[0]["concurrency"] if known else None,
        "request_rate": known[0].get("request_rate") if known else None,
        "verdict": said.verdict.value,
        "verdict_text": verdict_text(said, arms, labels, bound),
        "effect_percent": said.effect_percent,
        "interval_low_percent": interval[0],
        "interval_high_percent": interval[1],
        "confidence": said.confidence,
        "p": said.p,
        "p_adjusted": said.p_adjusted,
        "p_equivalence_adjusted": said.p_equivalence_adjusted,
        "bound_percent": bound,
        "base_launches": len(arms.base),
        "other_launches": len(arms.other),
        "base_left_out": len(point.base) - len(arms.base),
        "other_left_out": len(point.other) - len(arms.other),
        "base_mean": _geometric(arms.base),
        "other_mean": _geometric(arms.other),
        "noise_floor_percent": said.noise_floor_percent,
        "note": _note(said, bound) or None,
        "warning": _warning(said) or None,
    }


def verdict_text(said: Judged, arms: Arms, labels: tuple[str, str], bound: float) -> str:
    """Return the verdict in words."""
    match said.verdict:
        case Verdict.NO_DIFFERENCE:
            return f"no difference larger than {bound:g} %"
        case Verdict.NONE:
            return f"no verdict ({_why_none(arms, labels)})"
        case _:
            return said.verdict.value


def _why_none(arms: Arms, labels: tuple[str, str]) -> str:
    counts = (len(arms.base), len(arms.other))
    if 0 in counts:
        without = [label for label, count in zip(labels, counts, strict=True) if not count]
        return f"no value of {' or '.join(without)} that may be compared"
    if counts == (1, 1):
        return "single runs"
    return f"launches: {counts[0]} against {counts[1]}, {PAIRS_NEEDED} of each are needed"


def _note(said: Judged, bound: float) -> str:
    low, high = said.interval_percent or (-math.inf, math.inf)
    if said.verdict in (Verdict.BETTER, Verdict.WORSE) and -bound < low and high < bound:
        return f"smaller than the {bound:g} % that are called relevant"
    return ""


def _warning(said: Judged) -> str:
    floor, effect = said.noise_floor_percent, said.effect_percent
    if said.verdict is Verdict.NO_DIFFERENCE or said.verdict is Verdict.NONE:
        return ""
    if floor is None or effect is None or abs(effect) > floor:
        return ""
    return (
        f"the effect is not larger than what two launches of one campaign typically differ by "
        f"({floor:.2g} %)"
    )


def _geometric(values: Sequence[float]) -> float | None:
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else None
