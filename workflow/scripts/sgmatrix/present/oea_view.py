"""What the report says of OEA where the arms of a comparison differ in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgmatrix.analysis.experts import (
    Bandwidth,
    BatchEffect,
    Cause,
    Quality,
    bandwidth_of,
    batch_effects,
    cause,
    quality_of,
)
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.probes import probe_doubts, probe_of

Row = Mapping[str, Any]

CAUSES: Mapping[Cause, str] = {
    "gain": "It reads fewer experts, and is faster for it",
    "better_without": "It is better, and not by fewer experts: it reads as many as without OEA",
    "better_unexplained": "It is better; whether by fewer experts is not known",
    "no_fewer_experts": "No fewer experts: the tokens of a batch choose as many as without it",
    "not_expert_bound": "Not expert-bound: reading fewer experts can save less than the bound",
    "router_overhead": "Router overhead: fewer experts should save more than the bound, and do "
    "not; the plug-in's own work, or what is not expert reading, takes it",
    "confounded": "The arms differ in more than OEA, so what OEA does cannot be told",
    "unknown": "Why it is, or is not, faster is not known",
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
    bandwidth: str
    """Of the device, measured by the probes; empty where it was not."""
    proof: str
    """What the ranks proved; empty where they did not."""
    problem: str
    """Why there is no count, or none that can be; empty where there is."""


def oea_view(
    layout: Layout, plan: Mapping[str, Any], primary: Row, rows: Sequence[Row]
) -> OeaView | None:
    """Return what OEA does in a comparison; None where the arms do not differ in it.

    Args:
        layout: where the probes are.
        plan: `plan.json`.
        primary: the row of the load point that decides.
        rows: of all load points.
    """
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
        confounded=bool(others := other_differences(*arms)),
    )
    return OeaView(
        effects=tuple(effects),
        compared={batch: row for row in rows if (batch := _batch_of(plan, row)) is not None},
        cause=why,
        cause_text=CAUSES[why],
        detail="; ".join([*others, _detail(effect, tpot_ms)]),
        quality=quality_of(off, on),
        bandwidth=_bandwidth_text(bandwidth_of(off, on)),
        proof=_proof(on),
        problem=_problem(
            {"off": off, "on": on},
            {
                arm: _batches_asked(plan, cell["id"])
                for arm, cell in zip(("off", "on"), arms, strict=True)
            },
            probe_doubts(layout, plan).get(arms[1]["id"]),
        ),
    )


def other_differences(baseline: Row, variant: Row) -> list[str]:
    """Return in what two cells of a plan differ beside OEA, in words: axes, or what they set.

    Axes are named where there are any; what overrides or the engine make of them is not repeated.
    """
    axes = _apart(baseline.get("axes"), variant.get("axes"), lambda name: name != "oea")
    if axes:
        return axes
    return [
        *_apart(baseline.get("flags"), variant.get("flags")),
        *_apart(baseline.get("env"), variant.get("env"), lambda name: not name.startswith("OEA_")),
        *(
            f"{name}: not the same"
            for name in ("engine", "engine_version", "patches", "python")
            if baseline.get(name) != variant.get(name)
        ),
    ]


def _apart(
    one: Row | None, other: Row | None, counts: Callable[[str], bool] = lambda _: True
) -> list[str]:
    one, other = one or {}, other or {}
    return [
        f"{name}: {one.get(name, 'not set')} and {other.get(name, 'not set')}"
        for name in sorted({*one, *other})
        if counts(name) and one.get(name) != other.get(name)
    ]


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
    if effect.predicted_ms <= 0:
        return said
    share = f", {100 * effect.predicted_ms / tpot_ms:.2g} % of TPOT" if tpot_ms else ""
    saved = f"{effect.predicted_ms:.2g} ms per step"
    return f"{said}; reading those that it leaves out takes {saved}{share}"


def _proof(on: Mapping[str, Any]) -> str:
    ranks = on.get("proof") or []
    if not ranks:
        return ""
    cores = sorted({f"{rank['core']} core, k0 = {rank['k0']}" for rank in ranks})
    checked = all((rank.get("check") or {}).get("ok") for rank in ranks)
    how = "compared with the reference on its own device" if checked else "not compared"
    count = f"{len(ranks)} rank{'' if len(ranks) == 1 else 's'}"
    return f"{count} proved that OEA runs ({'; '.join(cores)}), {how}"


def _batches_asked(plan: Mapping[str, Any], cell: str) -> list[int]:
    """Return the batch sizes that a cell's probe is to count."""
    for planned in plan.get("probes", []):
        if planned["cell"] == cell:
            return [point["concurrency"] for point in planned["points"]]
    return []


def _problem(
    probes: Mapping[str, Mapping[str, Any]], asked: Mapping[str, Sequence[int]], doubt: str | None
) -> str:
    said = [f"the points with OEA on are left out: {doubt}"] if doubt else []
    for arm, probe in probes.items():
        if not probe:
            said.append(f"OEA {arm} was not probed")
        elif probe["status"] != "ok":
            said.append(f"the probe with OEA {arm} failed: {probe['reason']}: {probe['detail']}")
        elif empty := [one for one in asked[arm] if str(one) not in (probe.get("batches") or {})]:
            said.append(
                f"the probe with OEA {arm} saw no step of {', '.join(map(str, empty))} tokens: the "
                "server never decoded so many requests at once"
            )
    return "; ".join(said)


def _bandwidth_text(bandwidth: Bandwidth) -> str:
    if bandwidth.largest is None:
        return ""
    said = f"{bandwidth.largest / 1e9:.3g} GB/s"
    if not bandwidth.apart:
        return said
    return (
        f"{said}, the larger of {_giga(bandwidth.off)} with OEA off and {_giga(bandwidth.on)} with "
        "OEA on: something else used the device, so the predicted gain is no better known"
    )


def _giga(value: float | None) -> str:
    return "" if value is None else f"{value / 1e9:.3g}"


def whole_percent(value: float) -> str:
    """Return a change in whole percent with its sign; 0 has none."""
    return f"{round(value):+d} %" if round(value) else "0 %"
