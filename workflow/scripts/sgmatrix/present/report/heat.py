"""The matrix as tables with shades: cells against loads, and lever against lever.

A table stays readable without its colours: each field says its number, its change, or why it is
blank.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sgmatrix.dataset.figures import LoadPoint, Row, Workload, offered
from sgmatrix.present.cells import CellView
from sgmatrix.present.figures.levers import Axes, by_influence
from sgmatrix.present.report.numbers import number

_FULL = math.log(1.5)
"""A change by half has the full shade."""
_MOST_TABLES = 12
_LEAST_FILLED = 0.5


@dataclass(frozen=True)
class Field:
    """One field of a table."""

    text: str
    kind: str
    """better | worse | level | barred | failed | blank."""
    strength: float = 0.0
    """0 to 1."""
    note: str = ""


@dataclass(frozen=True)
class Heat:
    """One table."""

    title: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Field, ...]], ...]


def against_base(cells: Sequence[CellView], rows: Sequence[Row]) -> list[Heat]:
    """Return output throughput by cell and load, each beside the base at that load.

    Args:
        cells: the base first.
        rows: the current points, also those that failed or were not run.
    """
    of_place: dict[tuple[Workload, str], dict[str, list[Row]]] = {}
    for row in rows:
        workload = (row["dataset"], row["input_len"], row["output_len"])
        place = (workload, offered(row["concurrency"], row.get("request_rate")))
        of_place.setdefault(place, {}).setdefault(row["cell"], []).append(row)
    tables = []
    for workload in sorted({workload for workload, _ in of_place}):
        places = sorted((p for p in of_place if p[0] == workload), key=_order)
        base = {load.key: load for load in cells[0].loads} if cells else {}
        lines = tuple(
            (
                cell.cell,
                tuple(
                    _field(cell, place, base.get(place), of_place[place].get(cell.cell, []))
                    for place in places
                ),
            )
            for cell in cells
        )
        title = f"{workload[0]} prompts, {workload[1]} tokens in, {workload[2]} tokens out"
        columns = tuple(at for _, at in places)
        what = "load" if any(at.endswith("/s") for at in columns) else "concurrency"
        tables.append(Heat(title, f"cell \\ {what}", columns, lines))
    return tables


def _order(place: tuple[Workload, str]) -> tuple[bool, float]:
    at = place[1]
    return at.endswith("/s"), float(at.removesuffix("/s"))


def _field(
    cell: CellView, place: tuple[Workload, str], base: LoadPoint | None, rows: Sequence[Row]
) -> Field:
    load = next((load for load in cell.loads if load.key == place), None)
    figure = load.output_tok_s if load else None
    if figure is None:
        return _unmeasured(rows)
    if figure.barred:
        names = {row["validity"] for row in rows if row["validity"] not in (None, "valid")}
        return Field(number(figure.mean), "barred", note=", ".join(sorted(names)))
    theirs = base.output_tok_s if base else None
    if load is base or theirs is None or theirs.barred or min(theirs.mean, figure.mean) <= 0:
        return Field(number(figure.mean), "level")
    change = figure.mean / theirs.mean
    strength = min(1.0, abs(math.log(change)) / _FULL)
    kind = "better" if change > 1 else "worse" if change < 1 else "level"
    return Field(number(figure.mean), kind, round(strength, 2), f"{100 * (change - 1):+.1f} %")


def _unmeasured(rows: Sequence[Row]) -> Field:
    """Return why a field is blank."""
    for status in ("failed", "skipped"):
        for row in rows:
            if row["status"] == status:
                return Field("failed" if status == "failed" else "", "failed", note=row["reason"])
    return Field("", "blank", note="not run" if rows else "not planned")


def levers(cells: Sequence[CellView], axes: Axes) -> list[Heat]:
    """Return the best throughput of each cell by its two strongest levers, a table per rest.

    None where fewer than two levers vary, or where most of the fields would be empty.
    """
    known = by_influence(cells, {cell.cell: axes[cell.cell] for cell in cells})
    if len(known) < 2:
        return []
    (first, second), others = list(known)[:2], list(known)[2:]
    rest = list(itertools.product(*(known[axis] for axis in others)))
    fields = len(known[first]) * len(known[second]) * len(rest)
    if len(rest) > _MOST_TABLES or len(cells) < _LEAST_FILLED * fields:
        return []
    best = {
        tuple(_text(axes[cell.cell], axis) for axis in (first, second, *others)): cell
        for cell in cells
    }
    rates = [rate for cell in cells if (rate := _rate(cell)) is not None]
    low, high = (min(rates), max(rates)) if rates else (0.0, 0.0)
    return [
        Heat(
            ", ".join(f"{axis} = {value}" for axis, value in zip(others, values, strict=True)),
            f"{first} \\ {second}",
            tuple(known[second]),
            tuple(
                (
                    row,
                    tuple(_best(best.get((row, col, *values)), low, high) for col in known[second]),
                )
                for row in known[first]
            ),
        )
        for values in rest
    ]


def _text(texts: Mapping[str, str | None], axis: str) -> str:
    value = texts.get(axis)
    return "not set" if value is None else value


def _rate(cell: CellView) -> float | None:
    figure = cell.best.output_tok_s if cell.best else None
    return None if figure is None or figure.barred else figure.mean


def _best(cell: CellView | None, low: float, high: float) -> Field:
    if cell is None:
        return Field("", "blank", note="not planned")
    rate = _rate(cell)
    if rate is None:
        barred = cell.best is not None
        return Field(
            "",
            "barred" if barred else "failed" if cell.failures else "blank",
            note="flagged" if barred else _reason(cell),
        )
    strength = (rate - low) / (high - low) if high > low else 0.0
    note = f"at {cell.best.at}" if cell.best else ""
    note += ", failed later" if cell.status == "failed" else ""
    return Field(number(rate), "more", round(0.1 + 0.9 * strength, 2), note)


def _reason(cell: CellView) -> str:
    return next((one.reason for one in cell.failures if one.reason), "not run")
