"""The figures of the report: cells against concurrency, references and ceilings beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sgmatrix.present.cells import CellView, Figure, Workload
from sgmatrix.present.plots import COLOURS, MUTED, PAGE, Curve, Mark, draw
from sgmatrix.present.points import Row


@dataclass(frozen=True)
class Legend:
    """A cell's entry beside the figures."""

    cell: str
    colour: str
    dashed: bool
    note: str


@dataclass(frozen=True)
class Charts:
    """The figures of one workload."""

    workload: Workload
    throughput: Markup
    tpot: Markup


def _coloured(cells: Sequence[CellView]) -> list[CellView]:
    """Return the cells that get a colour: the base and the best ones, in the order of the plan."""
    base, others = cells[:1], [cell for cell in cells[1:] if cell.best]
    ranked = sorted(
        others,
        key=lambda cell: (
            cell.status == "failed",
            -_mean(cell.best.output_tok_s if cell.best else None),
        ),
    )
    top = {cell.cell for cell in ranked[: len(COLOURS)]}
    return [*base, *(cell for cell in others if cell.cell in top)]


def _mean(figure: Figure | None) -> float:
    return 0.0 if figure is None else figure.mean


def legends(cells: Sequence[CellView]) -> list[Legend]:
    """Return what the figures show in which colour, then what they cannot show."""
    coloured = _coloured(cells)
    colours = iter(COLOURS)
    entries = []
    for cell in coloured:
        if cell.loads:
            base = cell is cells[0]
            notes = [
                *(["base"] if base else []),
                *(["failed"] if cell.status == "failed" else []),
            ]
            entries.append(
                Legend(cell.cell, PAGE if base else next(colours), base, ", ".join(notes))
            )
    grey = [cell for cell in cells if cell.loads][len(entries) :]
    if grey:
        entries.append(Legend(f"{len(grey)} more", MUTED, False, "named in the table"))
    return entries


def charts(cells: Sequence[CellView], rows: Sequence[Row], plan: Mapping[str, Any]) -> list[Charts]:
    """Return the figures, one pair per workload; references and ceilings below the cells."""
    colour = {entry.cell: entry for entry in legends(cells)}
    workloads = sorted({load.workload for cell in cells for load in cell.loads})
    drawn = []
    for workload in workloads:
        pair = []
        for column, label in (
            ("output_tok_s", "output throughput (tok/s)"),
            ("tpot_ms", "mean TPOT (ms)"),
        ):
            curves = _reference_curves(plan, workload, column)
            # the grey ones below, the dashed base on top of what it is compared with
            for cell in sorted(cells, key=lambda cell: (cell.cell in colour, cell is cells[0])):
                entry = colour.get(cell.cell)
                marks = [
                    Mark(load.concurrency, figure.mean, figure.low, figure.high, figure.barred)
                    for load in cell.loads
                    if load.workload == workload
                    and load.concurrency is not None
                    and (figure := getattr(load, column))
                ]
                curves.append(
                    Curve(
                        entry.colour if entry else MUTED, bool(entry and entry.dashed), tuple(marks)
                    )
                )
            if (ceiling := _ceiling_curve(cells, rows, workload, column, curves)) is not None:
                curves.insert(0, ceiling)
            pair.append(Markup(draw(curves, ylabel=label)))  # noqa: S704 - our own SVG, text escaped
        drawn.append(Charts(workload, *pair))
    return drawn


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


_CEILING = {"output_tok_s": "ceiling_practical_tok_s", "tpot_ms": "ceiling_practical_tpot_ms"}
_FAR = 4.0
"""Times the highest mark: a ceiling further up would press all others to the ground."""


def _ceiling_curve(
    cells: Sequence[CellView],
    rows: Sequence[Row],
    workload: Workload,
    column: str,
    curves: Sequence[Curve],
) -> Curve | None:
    """Return the practical ceiling of the base cell, where it is not far above all marks."""
    base = cells[0].cell if cells else None
    known = {
        row["concurrency"]: row[_CEILING[column]]
        for row in rows
        if row["cell"] == base
        and (row["dataset"], row["input_len"], row["output_len"]) == workload
        and row["concurrency"]
        and row.get(_CEILING[column])
    }
    most = max((mark.high for curve in curves for mark in curve.marks), default=0.0)
    if not known or max(known.values()) > _FAR * most:
        return None
    marks = tuple(Mark(at, y, y, y, barred=False) for at, y in sorted(known.items()))
    return Curve(PAGE, False, marks, "ceiling")


def other_legends(rows: Sequence[Row], plan: Mapping[str, Any]) -> list[Legend]:
    """Return what the figures show beside the cells."""
    entries = [
        Legend(reference["file"]["name"], MUTED, False, "reference, not measured here")
        for reference in plan.get("references") or []
    ]
    if any(row.get("ceiling_practical_tok_s") for row in rows):
        note = "of the base; not drawn where it is far above"
        entries.append(Legend("practical ceiling", PAGE, True, note))
    return entries
