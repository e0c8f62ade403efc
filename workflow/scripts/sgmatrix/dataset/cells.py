"""The rows of `cells`: what the launches of a server configuration come to.

What counts is what the report counts: current attempts of planned launches; of a cell that is no
longer planned, all current attempts. The best is the highest throughput of a closed loop that no
flag bars, by the mean over launches.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from sgmatrix.core.clock import parse_utc
from sgmatrix.core.flags import Kind
from sgmatrix.core.layout import base_launch
from sgmatrix.core.reasons import NOT_NEEDED
from sgmatrix.dataset.figures import (
    Figure,
    LoadPoint,
    Row,
    best_load,
    figure,
    first_bad_rows,
    load_points,
    single_stream,
)
from sgmatrix.dataset.history import Attempt
from sgmatrix.dataset.spans import phases_s

_PHASES = ("start_s", "warmup_s", "bench_s", "teardown_s")


def cell_rows(
    plan: Mapping[str, Any],
    points: Sequence[Row],
    attempts: Sequence[Attempt],
    gpu_memory_mib: Mapping[str, float],
) -> list[dict[str, Any]]:
    """Return a row per cell of the plan and of the history, in the order of the points.

    Args:
        plan: the campaign's.
        points: all rows of `points`.
        attempts: the history.
        gpu_memory_mib: by cell, the most that one of its GPUs had in use.
    """
    by_cell: dict[str, list[Row]] = {}
    for row in points:
        by_cell.setdefault(row["cell"], []).append(row)
    of_cell: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        of_cell.setdefault(attempt.spec["cell"]["id"], []).append(attempt)
    planned = {
        (one["cell"], one["launch"], point["load_id"])
        for one in plan["launches"]
        for point in one["points"]
    }
    made = []
    for cell, rows in by_cell.items():
        mine = of_cell.get(cell, [])
        counted = _that_count(rows, planned, cell in plan["cells"])
        row = {
            **_identity(cell, plan, mine),
            **_state(cell, counted, mine, plan),
            **_best([row for row in counted if row["status"] == "ok"]),
            **_phases(mine),
            "gpu_memory_used_mib_max": gpu_memory_mib.get(cell),
        }
        if row["gpus"] and row["best_output_tok_s"] is not None:
            row["best_output_tok_s_per_gpu"] = row["best_output_tok_s"] / row["gpus"]
        made.append(row)
    return made


def _that_count(rows: Sequence[Row], planned: set[tuple[Any, ...]], in_plan: bool) -> list[Row]:
    return [
        row
        for row in rows
        if row["current"]
        and row.get("reason") != NOT_NEEDED
        and (not in_plan or (row["cell"], row["launch"], row["load_id"]) in planned)
    ]


def _newest(attempts: Sequence[Attempt]) -> Attempt | None:
    """Return the current attempt that was asked for last."""
    current = [attempt for attempt in attempts if attempt.current]
    return max(current, key=lambda one: str(one.spec.get("asked_at") or ""), default=None)


def _identity(cell: str, plan: Mapping[str, Any], attempts: Sequence[Attempt]) -> dict[str, Any]:
    newest = _newest(attempts)
    of_history = newest or (attempts[-1] if attempts else None)
    planned = plan["cells"].get(cell)
    known: Mapping[str, Any] = planned or (of_history.spec["cell"] if of_history else {})
    model = plan if planned or of_history is None else of_history.spec
    final = (newest.final if newest else None) or {}
    asked = sorted(one.spec["asked_at"] for one in attempts if one.spec.get("asked_at"))
    version = ((newest.server if newest else None) or {}).get("info") or {}
    return {
        "campaign": plan["campaign"],
        "study": plan["study"],
        "cell": cell,
        "cell_key": known["key"],
        "planned": planned is not None,
        "model": (model.get("model") or {}).get("name"),
        "gpus": known.get("gpus"),
        "engine": known["engine"],
        "engine_version": version.get("version"),
        "harness": newest.spec.get("harness") if newest else None,
        "asked_at": parse_utc(asked[0]) if asked else None,
        "finished_at": _time(final.get("finished_at")),
        "attempts": len(attempts),
        "argv": shlex.join(final["argv"]) if final.get("argv") else None,
        **{f"axis_{axis}": text for axis, text in known["axes_text"].items()},
    }


def _time(text: str | None) -> Any:
    return None if text is None else parse_utc(text)


def _state(
    cell: str, rows: Sequence[Row], attempts: Sequence[Attempt], plan: Mapping[str, Any]
) -> dict[str, Any]:
    """Return whether the cell is ok, and how many of its launches and points are."""
    failures = _failures(rows, attempts)
    planned = {base_launch(one["launch"]) for one in plan["launches"] if one["cell"] == cell}
    wanted = planned & {base_launch(row["launch"]) for row in rows}
    bad = {base_launch(launch) for launch, _, _ in failures}
    open_ = {base_launch(row["launch"]) for row in rows if row["status"] != "ok"}
    seen = {base_launch(row["launch"]) for row in rows}
    ok = [row for row in rows if row["status"] == "ok"]
    reason, detail = failures[0][1:] if failures else (None, None)
    status = "failed" if failures else "ok" if rows and len(ok) == len(rows) else "not_run"
    if status == "not_run" and any(attempt.final is None for attempt in attempts):
        reason = "interrupted"
    return {
        "status": status,
        "reason": reason,
        "detail": detail,
        "launches_planned": len(wanted),
        "launches_ok": len(seen - open_ - bad),
        "launches_failed": len(bad),
        "points_planned": len(rows) if planned else 0,
        "points_ok": len(ok),
        "points_failed": sum(row["status"] in ("failed", "skipped") for row in rows),
        "points_flagged": sum(row.get("validity") not in (None, "valid") for row in ok),
    }


def _failures(
    rows: Sequence[Row], attempts: Sequence[Attempt]
) -> list[tuple[str, str | None, str | None]]:
    """Return launch, reason and what happened of each launch that failed, in order."""
    found: dict[str, tuple[str, str | None, str | None]] = {}
    for attempt in attempts:
        final = attempt.final or {}
        # without points that count it is of a launch that is no longer planned, or not needed
        if not attempt.current or not any(attempt.spec["launch"] == r["launch"] for r in rows):
            continue
        if final.get("status") == "failed":
            closed = final.get("closed") or {}
            root = closed.get("root_line") if closed.get("reason") else None
            launch = attempt.spec["launch"]
            found[launch] = (launch, final.get("reason"), root or final.get("detail"))
    for row in first_bad_rows(rows):
        bad = (row["launch"], row.get("reason"), row.get("detail"))
        found.setdefault(row["launch"], bad)
    return list(found.values())


def _best(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the best load point of the closed loop and the single stream, where trusted."""
    closed = load_points(row for row in rows if row["concurrency"] is not None)
    found = {
        "best_output_tok_s": None,
        **_single(single_stream(closed)),
    }
    best = best_load(closed)
    if best is None or best.output_tok_s is None or best.output_tok_s.barred:
        return found
    there = [row for row in rows if _is_at(row, best)]

    def mean(column: str, kind: Kind) -> float | None:
        return _trusted(figure(there, column, kind))

    dataset, input_len, output_len = best.workload
    return {
        **found,
        "best_output_tok_s": best.output_tok_s.mean,
        "best_output_tok_s_low": best.output_tok_s.low,
        "best_output_tok_s_high": best.output_tok_s.high,
        "best_launches": best.output_tok_s.launches,
        "best_load_id": there[0]["load_id"],
        "best_concurrency": best.concurrency,
        "best_dataset": dataset,
        "best_input_len": input_len,
        "best_output_len": output_len,
        "best_tpot_ms_mean": _trusted(best.tpot_ms),
        "best_ttft_ms_mean": mean("ttft_ms_mean", "latency"),
        "best_power_w_mean": mean("power_w_mean", "throughput"),
        "best_energy_j_per_output_tok": mean("energy_j_per_output_tok", "throughput"),
        "best_hard_ratio": mean("hard_ratio", "throughput"),
        "best_practical_ratio": mean("practical_ratio", "throughput"),
    }


def _is_at(row: Row, load: LoadPoint) -> bool:
    workload = (row["dataset"], row["input_len"], row["output_len"])
    return workload == load.workload and row["concurrency"] == load.concurrency


def _single(load: LoadPoint | None) -> dict[str, Any]:
    return {
        "single_tpot_ms_mean": None if load is None else _trusted(load.tpot_ms),
        "single_output_tok_s": None if load is None else _trusted(load.output_tok_s),
    }


def _trusted(found: Figure | None) -> float | None:
    return None if found is None or found.barred else found.mean


def _phases(attempts: Sequence[Attempt]) -> dict[str, float | None]:
    """Return the mean of each phase over the current attempts that have it."""
    took = [phases_s(attempt) for attempt in attempts if attempt.current]
    means: dict[str, float | None] = {}
    for phase in _PHASES:
        values = [one[phase] for one in took if phase in one]
        means[phase] = sum(values) / len(values) if values else None
    return means
