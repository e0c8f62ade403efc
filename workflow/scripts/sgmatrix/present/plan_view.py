"""A plan as people read it before any GPU time: cells, launches, points, time, and what is odd."""

from __future__ import annotations

from collections.abc import Sequence

from sgmatrix.analysis.advice.piece import Advice
from sgmatrix.analysis.ledger.concern import Finding
from sgmatrix.core.environment import kept_from_engines
from sgmatrix.core.layout import Layout
from sgmatrix.plan.client import PYTHON_STREAMS
from sgmatrix.plan.inspection import AxisAudit
from sgmatrix.plan.plan import Plan
from sgmatrix.present.estimate import Estimate, clock
from sgmatrix.present.ledger_view import warning_lines

_MOST_EXCLUDED = 10
_MOST_CELLS = 40
"""Cells that are listed; a longer list is cut in the middle."""


def _table(plan: Plan, done: set[tuple[str, str]]) -> list[str]:
    rows = [("cell", "gpus", "launches", "points", "state")]
    for cell in plan.cells.values():
        launches = [one for one in plan.launches if one.cell == cell.id]
        finished = sum((one.cell, one.launch) in done for one in launches)
        state = "done" if finished == len(launches) else f"{finished} done" if finished else "to do"
        points = sum(len(one.points) for one in launches)
        rows.append((cell.id, str(cell.gpus), str(len(launches)), str(points), state))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    lines = [
        f"{row[0].ljust(widths[0])}  "
        + "  ".join(text.rjust(width) for text, width in zip(row[1:4], widths[1:4], strict=True))
        + f"  {row[4]}"
        for row in rows
    ]
    if len(lines) > _MOST_CELLS + 1:
        half = _MOST_CELLS // 2
        left = len(lines) - 1 - 2 * half
        lines = [*lines[: half + 1], f"… {left} more cells …", *lines[-half:]]
    return lines


def audit_lines(audits: Sequence[AxisAudit]) -> list[str]:
    """Return a line for each axis whose flags no code of its engine reads."""
    return [
        f"dead_flag: axis {one.axis}: sglang {one.version} declares "
        f"{', '.join('--' + use.flag.replace('_', '-') for use in one.uses)} and no code of it "
        "reads it; its cells differ by noise alone (an A/A test)"
        for one in audits
        if one.verdict == "dead_flag"
    ]


def _shell_lines(plan: Plan) -> list[str]:
    """Return a line on variables of this shell that servers do not get, if there are any."""
    declared = {name for cell in plan.cells.values() for name in cell.env}
    left = [name for name in kept_from_engines() if name not in declared]
    if not left:
        return []
    names = ", ".join(left[:6]) + (f" and {len(left) - 6} more" if len(left) > 6 else "")
    return [f"not passed on to servers: {names}; declare in engines.<name>.env what they need"]


def _client_lines(plan: Plan) -> list[str]:
    """Return a line where the Python client has more streams than its times are right with."""
    if plan.client["kind"] != "python":
        return []
    streams = [point.concurrency or point.max_concurrency or 0 for _, point in plan.points()]
    most = max(streams, default=0)
    if most <= PYTHON_STREAMS:
        return []
    line = (
        f"client_limited: SGLang's Python load client is one thread, and up to {most} requests are "
        f"in flight; above {PYTHON_STREAMS} its TTFT is late by tenths of a second "
        "(docs/accuracy.md)"
    )
    return [line]


def _probe_lines(plan: Plan, layout: Layout) -> list[str]:
    """Return a line on the launches that count experts, which the estimate leaves out."""
    left = [probe.cell for probe in plan.probes if not probe.is_done(layout)]
    if not left:
        return []
    cells = ", ".join(left[:6])
    more = f" and {len(left) - 6} more" if len(left) > 6 else ""
    return [f"before them, one untimed launch each counts experts: {cells}{more}"]


def plan_text(
    plan: Plan,
    layout: Layout,
    audits: Sequence[AxisAudit],
    advice: Sequence[Advice] = (),
    findings: Sequence[Finding] = (),
) -> str:
    """Return the whole view."""
    done = {(one.cell, one.launch) for one in plan.launches if one.is_done(layout)}
    left = [one for one in plan.launches if (one.cell, one.launch) not in done]
    estimate = Estimate(plan, layout)
    engines = ", ".join(
        f"{name} (sglang {plan.engines[name].version})" for name in sorted(plan.engines)
    )
    points = sum(len(one.points) for one in left)
    source = "from this campaign's history" if estimate.took else "assumed, there is no history"
    expected = clock(estimate.remaining_s([(one.cell, one.launch) for one in left]))
    planned = f"{len(plan.launches)} launches, {sum(1 for _ in plan.points())} load points"
    lines = [
        f"campaign {plan.campaign}: {len(plan.cells)} cells, {planned}",
        f"engines {engines}; load client {plan.client['id']}; model {plan.model.name}",
        "",
        *_table(plan, done),
        "",
        f"to do: {len(left)} launches, {points} load points, about {expected} ({source})",
        *_probe_lines(plan, layout),
        *(f"left out by exclude: {cell}" for cell in plan.excluded[:_MOST_EXCLUDED]),
        *(f"planned only, it cannot run here: {line}" for line in plan.absences()),
        *_shell_lines(plan),
        *_client_lines(plan),
        *audit_lines(audits),
        *warning_lines(findings),
        *(one.line() for one in advice),
    ]
    return "\n".join(lines)
