"""What the report says of the campaign's comparisons, and of OEA where the arms differ in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from sgmatrix.analysis.experts import (
    BatchEffect,
    Cause,
    Quality,
    batch_effects,
    cause,
    quality_of,
)
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.probes import probe_doubts, probe_of

Row = Mapping[str, Any]

CAUSES: Mapping[Cause, str] = {
    "gain": "it reads fewer experts, and is faster for it",
    "no_fewer_experts": "no fewer experts: the tokens of a batch choose as many as without it",
    "not_expert_bound": "not expert-bound: reading fewer experts can save less than the bound",
    "router_overhead": "router overhead: fewer experts should save more than the bound, and do "
    "not; the plug-in's own work, or what is not expert reading, takes it",
    "unknown": "why it is, or is not, faster is not known",
}


@dataclass(frozen=True)
class OeaView:
    """Experts, bytes and quality of two arms that differ in OEA."""

    effects: tuple[BatchEffect, ...]
    compared: Mapping[int, Row]
    """Row of the comparison at the load point of each batch size."""
    cause: Cause
    cause_text: str
    detail: str
    """What the cause leans on, in numbers."""
    quality: Quality
    bandwidth_gb_s: float | None
    proof: str
    """What the ranks proved; empty where they did not."""
    problem: str
    """Why there is no count, or none that can be; empty where there is."""


@dataclass(frozen=True)
class ComparisonView:
    """One comparison."""

    name: str
    baseline: str
    variant: str
    metric: str
    primary: Row
    rows: tuple[Row, ...]
    """All load points, the primary one among them."""
    oea: OeaView | None


def comparison_views(
    layout: Layout, plan: Mapping[str, Any], table: Path
) -> tuple[ComparisonView, ...]:
    """Return the comparisons of a campaign in its own order; none without a table."""
    if not table.exists():
        return ()
    rows = pq.read_table(table, partitioning=None).to_pylist()
    names = list(dict.fromkeys(row["comparison"] for row in rows))
    return tuple(
        _view(layout, plan, [row for row in rows if row["comparison"] == name]) for name in names
    )


def _view(layout: Layout, plan: Mapping[str, Any], rows: list[Row]) -> ComparisonView:
    primary = next(row for row in rows if row["primary"])
    return ComparisonView(
        name=primary["comparison"],
        baseline=primary["baseline"],
        variant=primary["variant"],
        metric=primary["metric"],
        primary=primary,
        rows=tuple(rows),
        oea=_oea(layout, plan, primary, rows),
    )


def _oea(
    layout: Layout, plan: Mapping[str, Any], primary: Row, rows: Sequence[Row]
) -> OeaView | None:
    arms = [plan["cells"].get(primary[arm]) or {} for arm in ("baseline", "variant")]
    states = [(arm.get("oea") or {}).get("on") for arm in arms]
    if states != [False, True]:
        return None
    off, on = (probe_of(layout, arm["id"]) or {} for arm in arms)
    ranks = arms[1]["flags"].get("tp_size") or 1
    effects = batch_effects(
        off, on, expert_bytes=plan["model"].get("expert_bytes"), ranks=int(ranks)
    )
    batch = _batch_of(plan, primary)
    effect = next((one for one in effects if one.batch == batch), None)
    tpot_ms = primary["baseline_mean"] if primary["metric"].startswith("tpot") else None
    why = cause(
        effect,
        verdict=primary["verdict"],
        tpot_off_ms=tpot_ms,
        bound_percent=primary["bound_percent"],
    )
    return OeaView(
        effects=tuple(effects),
        compared={batch: row for row in rows if (batch := _batch_of(plan, row)) is not None},
        cause=why,
        cause_text=CAUSES[why],
        detail=_detail(effect, tpot_ms),
        quality=quality_of(off, on),
        bandwidth_gb_s=_giga(on.get("memory_bandwidth_bytes_s")),
        proof=_proof(on),
        problem=_problem({"off": off, "on": on}, probe_doubts(layout, plan).get(arms[1]["id"])),
    )


def _batch_of(plan: Mapping[str, Any], row: Row) -> int | None:
    """Return the batch size of a row's load point; None in the open loop."""
    for launch in plan["launches"]:
        for point in launch["points"]:
            if point["load_id"] == row["load_id"]:
                found: int | None = point["concurrency"]
                return found
    return None


def _detail(effect: BatchEffect | None, tpot_ms: float | None) -> str:
    if effect is None or effect.drop_share is None:
        return "the batch size that decides was not probed in both arms"
    said = (
        f"{effect.activated_off:.1f} to {effect.activated_on:.1f} distinct experts per step and "
        f"layer at batch {effect.batch} ({whole_percent(-100 * effect.drop_share)})"
    )
    if effect.predicted_ms is None:
        return f"{said}; what that saves is not known"
    share = f", {100 * effect.predicted_ms / tpot_ms:.2g} % of TPOT" if tpot_ms else ""
    return f"{said}; reading them takes {effect.predicted_ms:.2g} ms per step{share}"


def _proof(on: Mapping[str, Any]) -> str:
    ranks = on.get("proof") or []
    if not ranks:
        return ""
    cores = sorted({f"{rank['core']} core, k0 = {rank['k0']}" for rank in ranks})
    checked = all((rank.get("check") or {}).get("ok") for rank in ranks)
    how = "compared with the reference on its own device" if checked else "not compared"
    count = f"{len(ranks)} rank{'' if len(ranks) == 1 else 's'}"
    return f"{count} proved that OEA runs ({'; '.join(cores)}), {how}"


def _problem(probes: Mapping[str, Mapping[str, Any]], doubt: str | None) -> str:
    said = [f"the points with OEA on are left out: {doubt}"] if doubt else []
    for arm, probe in probes.items():
        if not probe:
            said.append(f"OEA {arm} was not probed")
        elif probe["status"] != "ok":
            said.append(f"the probe with OEA {arm} failed: {probe['reason']}: {probe['detail']}")
    return "; ".join(said)


def _giga(value: float | None) -> float | None:
    return None if value is None else value / 1e9


def comparison_lines(layout: Layout) -> list[str]:
    """Return one line per comparison, for the terminal."""
    table = layout.datasets / "comparisons.parquet"
    if not table.exists():
        return []
    rows = pq.read_table(table, partitioning=None).to_pylist()
    return [
        " ".join(
            part
            for part in (
                f"{row['comparison']}: {row['variant']} against {row['baseline']},",
                f"{row['metric']} at {row['load_id']}:",
                row["verdict_text"],
                signed_percent(row["effect_percent"]),
                f"({interval_text(row)})" if row["interval_low_percent"] is not None else "",
                f"after {row['launches_used']} of {row['launches_planned']} launches per arm",
            )
            if part
        )
        for row in rows
        if row["primary"]
    ]


def signed_percent(value: float | None) -> str:
    """Return a change in percent with its sign; empty where there is none."""
    return "" if value is None else f"{value:+.1f} %"


def whole_percent(value: float) -> str:
    """Return a change in whole percent with its sign; 0 has none."""
    return f"{round(value):+d} %" if round(value) else "0 %"


def interval_text(row: Row) -> str:
    """Return the interval of a change; empty where there is none."""
    low, high = row["interval_low_percent"], row["interval_high_percent"]
    return "" if low is None else f"{low:+.1f} to {high:+.1f} %"
