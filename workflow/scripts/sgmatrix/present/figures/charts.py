"""The figures of the report: cells against concurrency and against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sgmatrix.dataset.figures import Figure, Row, Workload
from sgmatrix.present.cells import CellView
from sgmatrix.present.figures.curves import Curve, Mark, draw
from sgmatrix.present.figures.levers import Entry, Look, Panel, Shared
from sgmatrix.present.figures.palette import MUTED, PAGE
from sgmatrix.present.figures.svg import Chart
from sgmatrix.present.figures.tradeoff import Pareto, closed_loads, trade_off


@dataclass(frozen=True)
class Metric:
    """What is drawn against concurrency."""

    attribute: str
    """Of a load point; also the metric's name in a reference."""
    label: str
    what: str
    better: str
    ceiling: str = ""
    """Column of `points` with the practical ceiling."""


METRICS = (
    Metric(
        "output_tok_s",
        "output throughput (tok/s)",
        "Output throughput",
        "higher",
        "ceiling_practical_tok_s",
    ),
    Metric(
        "tpot_ms",
        "mean TPOT (ms)",
        "Mean time per output token after the first",
        "lower",
        "ceiling_practical_tpot_ms",
    ),
    Metric("ttft_ms", "median TTFT (ms)", "Median time to first token", "lower"),
)
POWER = (
    Metric("power_w", "mean GPU power (W)", "Mean power of all GPUs of the cell", "lower"),
    Metric("energy_j", "energy (J per output token)", "GPU energy per output token", "lower"),
)


@dataclass(frozen=True)
class ChartRow:
    """The figures of one panel."""

    title: str
    charts: tuple[Chart, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Charts:
    """The figures of one workload."""

    workload: Workload
    pareto: Pareto | None
    rows: tuple[ChartRow, ...]
    power: tuple[ChartRow, ...]


def charts(
    cells: Sequence[CellView], rows: Sequence[Row], plan: Mapping[str, Any], shared: Shared
) -> list[Charts]:
    """Return the figures of each workload; references and ceilings below the cells."""
    workloads = sorted({load.workload for cell in cells for load in cell.loads})
    return [
        Charts(
            workload,
            trade_off(cells, workload, shared),
            _rows(cells, rows, plan, shared, workload, METRICS),
            _rows(cells, rows, plan, shared, workload, POWER),
        )
        for workload in workloads
    ]


def _curve(
    number: int, cell: CellView, look: Look, workload: Workload, attribute: str
) -> tuple[CellView, Curve]:
    marks = tuple(
        Mark(load.concurrency, figure.mean, figure.low, figure.high, figure.barred)
        for load in closed_loads(cell, workload)
        if load.concurrency is not None and (figure := getattr(load, attribute)) is not None
    )
    return cell, Curve(look.colour, look.dashed, marks, marker=look.marker, number=number)


def _rows(
    cells: Sequence[CellView],
    rows: Sequence[Row],
    plan: Mapping[str, Any],
    shared: Shared,
    workload: Workload,
    metrics: Sequence[Metric],
) -> tuple[ChartRow, ...]:
    small = len(shared.panels) > 1
    tops = {
        metric: max((figure.high for figure in _figures(cells, workload, metric)), default=None)
        for metric in metrics
    }
    made = []
    for panel in shared.panels:
        drawn = [
            chart
            for metric in metrics
            if (
                chart := _chart(
                    cells, rows, plan, panel, workload, metric, tops[metric] if small else None
                )
            )
        ]
        if drawn:
            made.append(ChartRow(panel.title, tuple(drawn), panel.entries))
    return tuple(made)


def _figures(cells: Sequence[CellView], workload: Workload, metric: Metric) -> list[Figure]:
    return [
        figure
        for cell in cells
        for load in closed_loads(cell, workload)
        if (figure := getattr(load, metric.attribute)) is not None
    ]


def _chart(
    cells: Sequence[CellView],
    rows: Sequence[Row],
    plan: Mapping[str, Any],
    panel: Panel,
    workload: Workload,
    metric: Metric,
    top: float | None,
) -> Chart | None:
    # the grey ones below, the dashed base on top of what it is compared with
    numbered = sorted(
        ((place, cell) for place, cell in enumerate(cells) if cell.cell in panel.looks),
        key=lambda one: (panel.looks[one[1].cell].colour != MUTED, one[1] is cells[0]),
    )
    own = [
        _curve(place, cell, panel.looks[cell.cell], workload, metric.attribute)
        for place, cell in numbered
    ]
    if not any(curve.marks for _, curve in own):
        return None
    curves = _reference_curves(plan, workload, metric.attribute)
    curves += [curve for _, curve in own]
    if (ceiling := _ceiling_curve(cells, rows, workload, metric, curves)) is not None:
        curves.insert(0, ceiling)
        top = None if top is None else max(top, *(mark.high for mark in ceiling.marks))
    svg = draw(curves, ylabel=metric.label, top=top, small=top is not None)
    return Chart(
        Markup(svg),  # noqa: S704 - our own SVG, text escaped
        f"{metric.what} against concurrency{f', {panel.title}' if panel.title else ''}. "
        + _extremes(own),
        f"{metric.what}; {metric.better} is better.",
    )


def _extremes(curves: Sequence[tuple[CellView, Curve]]) -> str:
    """Return the highest and the lowest mark in words."""
    marks = [(mark, cell.cell) for cell, curve in curves for mark in curve.marks if not mark.barred]
    if not marks:
        return "All its points are barred from comparison."
    high = max(marks, key=lambda one: one[0].y)
    low = min(marks, key=lambda one: one[0].y)
    return (
        "; ".join(
            f"{word}: {cell} with {mark.y:,.4g} at concurrency {mark.x:g}"
            for word, (mark, cell) in (("Highest", high), ("lowest", low))
        )
        + "."
    )


def _reference_curves(plan: Mapping[str, Any], workload: Workload, column: str) -> list[Curve]:
    """Return the series of the references that were measured with the lengths of a workload."""
    curves = []
    for reference in plan.get("references") or []:
        file = reference["file"]
        if (file["input_len"], file["output_len"]) != workload[1:]:
            continue
        series: dict[str, list[Mark]] = {}
        for one in reference["results"]:
            if one["metric"] == column and one["concurrency"] and one["value"] is not None:
                value = one["value"]
                mark = Mark(one["concurrency"], value, value, value, barred=False)
                series.setdefault(one["series"], []).append(mark)
        curves += [Curve(MUTED, False, tuple(marks), "reference") for marks in series.values()]
    return curves


_FAR = 4.0
"""Times the highest mark: a ceiling further up would press all others to the ground."""


def _ceiling_curve(
    cells: Sequence[CellView],
    rows: Sequence[Row],
    workload: Workload,
    metric: Metric,
    curves: Sequence[Curve],
) -> Curve | None:
    """Return the practical ceiling of the base cell, where it is not far above all marks."""
    if not metric.ceiling:
        return None
    base = cells[0].cell if cells else None
    known = {
        row["concurrency"]: row[metric.ceiling]
        for row in rows
        if row["cell"] == base
        and (row["dataset"], row["input_len"], row["output_len"]) == workload
        and row["concurrency"]
        and row.get(metric.ceiling)
    }
    most = max((mark.high for curve in curves for mark in curve.marks), default=0.0)
    if not known or max(known.values()) > _FAR * most:
        return None
    marks = tuple(Mark(at, y, y, y, barred=False) for at, y in sorted(known.items()))
    return Curve(PAGE, False, marks, "ceiling")


def other_entries(rows: Sequence[Row], plan: Mapping[str, Any]) -> list[Entry]:
    """Return what the figures show beside the cells."""
    entries = [
        Entry(reference["file"]["name"], Look(MUTED), "reference, not measured here")
        for reference in plan.get("references") or []
    ]
    if any(row.get("ceiling_practical_tok_s") for row in rows):
        note = "of the base; not drawn where it is far above"
        entries.append(Entry("practical ceiling", Look(PAGE, "", dashed=True), note))
    return entries
