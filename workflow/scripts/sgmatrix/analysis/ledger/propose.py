"""Ledger entries that follow from a campaign's own comparisons. No I/O, and no decision.

A comparison with a verdict gives an entry; a person reads it and puts it into the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sgmatrix.analysis.ledger.retest import hardware_names
from sgmatrix.plan.ledger import Status

Row = Mapping[str, Any]

_STATUS: Mapping[str, Status] = {
    "better": "helped",
    "worse": "ruled_out",
    "no_difference": "neutral",
}
_DIGITS = 4


@dataclass(frozen=True)
class Proposals:
    """What a campaign's comparisons come to for the ledger."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    """As the ledger's file holds them."""
    unfit: list[str] = field(default_factory=list)
    """Comparisons that have a verdict and give no entry, and why."""


def proposals(
    plan: Row, compared: Sequence[Row], points: Sequence[Row], nodes: Mapping[str, Row]
) -> Proposals:
    """Return an entry for each comparison with a verdict.

    Args:
        plan: what `plan.json` holds.
        compared: rows of `comparisons`.
        points: rows of `points`.
        nodes: cell id to the facts of the node that it was measured on.
    """
    found = Proposals()
    planned = {one["name"]: one for one in plan.get("comparisons", [])}
    for row in compared:
        if not row["primary"] or row["verdict"] not in _STATUS:
            continue
        one = planned.get(row["comparison"])
        arms = [row["baseline"], row["variant"]]
        if one is None or [one["baseline"], one["variant"]] != arms:
            found.unfit.append(f"{row['comparison']}: the campaign does not ask for it any more")
            continue
        used = [point for point in points if _is_of(point, one, row)]
        measured = {(point["cell"], point["cell_key"]) for point in used}
        if measured != {(cell, plan["cells"][cell]["key"]) for cell in arms}:
            found.unfit.append(
                f"{row['comparison']}: measured with another server than the campaign asks for now"
            )
            continue
        found.entries.append(_entry(plan, one, row, used, nodes.get(row["variant"], {})))
    return found


def _is_of(point: Row, planned: Row, row: Row) -> bool:
    """Tell whether a point is one that the verdict rests on."""
    if not point["current"] or point["status"] != "ok" or point["load_id"] != row["load_id"]:
        return False
    return any(
        (point["cell"], point["launch"]) == (row[arm], one[arm])
        for one in planned["rounds"][: row["launches_used"]]
        for arm in ("baseline", "variant")
    )


def _entry(plan: Row, planned: Row, row: Row, used: Sequence[Row], node: Row) -> dict[str, Any]:
    baseline, variant = (plan["cells"][row[arm]] for arm in ("baseline", "variant"))
    axes = [
        axis
        for axis in dict.fromkeys([*baseline["axes"], *variant["axes"]])
        if baseline["axes"].get(axis) != variant["axes"].get(axis)
    ]
    metric = row["metric"]
    effect = {
        "text": f"{row['verdict_text']}, over {row['pairs']} pairs of launches",
        "metric": metric,
        "percent": _rounded(row["effect_percent"]),
        "low_percent": _rounded(row["interval_low_percent"]),
        "high_percent": _rounded(row["interval_high_percent"]),
    }
    conditions = {
        "model": plan["model"]["name"],
        "hardware": ", ".join(hardware_names(node)) or None,
        "gpus": variant["gpus"] or None,
        "engine_version": variant["engine_version"],
        "load": _load_text(plan, planned, row),
    }
    doubts = "; ".join(text for text in (row["note"], row["warning"]) if text)
    entry = {
        "id": f"{plan['campaign'][:39]}-{planned['name'][:40]}",
        "status": _STATUS[row["verdict"]],
        "claim": f"{_said(variant, axes)} instead of {_said(baseline, axes)} "
        f"gives a better {metric}.",
        "conditions": {name: value for name, value in conditions.items() if value is not None},
        "applies_to": {axis: variant["axes"].get(axis) for axis in axes},
        "evidence": [
            {"campaign": plan["campaign"], "cell": cell["id"], "key": cell["key"]}
            for cell in (baseline, variant)
        ],
        "effect": {name: value for name, value in effect.items() if value is not None},
        "date": max(point["started_at"] for point in used).date().isoformat(),
    }
    return entry | ({"note": doubts} if doubts else {})


def _said(cell: Row, axes: Sequence[str]) -> str:
    """Return some axis values of a cell in words."""
    texts = ((axis, cell["axes_text"].get(axis)) for axis in axes)
    return ", ".join(f"{axis} {'left out' if text is None else text}" for axis, text in texts)


def _load_text(plan: Row, planned: Row, row: Row) -> str:
    """Return the load point that decided, in words."""
    point = next(
        point
        for launch in plan["launches"]
        if launch["cell"] == planned["variant"]
        for point in launch["points"]
        if point["load_id"] == row["load_id"]
    )
    rate = point["request_rate"]
    offered = f"{rate:g} requests/s" if rate is not None else f"concurrency {point['concurrency']}"
    lengths = f"{point['input_len']} tokens in, {point['output_len']} out"
    return f"{point['dataset']} prompts, {lengths}, {offered}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
