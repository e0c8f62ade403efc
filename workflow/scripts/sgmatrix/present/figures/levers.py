"""How the cells of a campaign share colours and panels, so that a hundred stay legible.

Few cells have a colour each. Of many, one lever has the colours and another one the panels: those
that move the throughput most. Where each cell differs from the base in one lever only, each lever
has a panel of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sgmatrix.present.cells import CellView
from sgmatrix.present.figures.palette import COLOURS, MARKERS, MUTED, PAGE

FEW = len(COLOURS) + 1
_MOST_PANELS = 9

Axes = Mapping[str, Mapping[str, str | None]]
"""Cell to axis to the text of its value."""


@dataclass(frozen=True)
class Look:
    """How a cell is drawn."""

    colour: str
    marker: str = "o"
    dashed: bool = False


@dataclass(frozen=True)
class Entry:
    """A line of a legend."""

    label: str
    look: Look
    note: str = ""
    numbers: tuple[int, ...] = ()
    """Places of its cells in the campaign."""


@dataclass(frozen=True)
class Panel:
    """Cells that are drawn together."""

    title: str
    looks: Mapping[str, Look]
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Shared:
    """All panels, and a legend that holds for all of them."""

    panels: tuple[Panel, ...]
    entries: tuple[Entry, ...]


def share_out(cells: Sequence[CellView], axes: Axes) -> Shared:
    """Return how cells are drawn; those without a measured point have no place."""
    drawn = [cell for cell in cells if cell.loads]
    numbers = {cell.cell: place for place, cell in enumerate(cells)}
    if len(drawn) <= FEW:
        return _of_cells(cells, drawn, numbers)
    if (alone := _one_at_a_time(cells, drawn, axes, numbers)) is not None:
        return alone
    lever, panel = _levers(drawn, axes)
    if lever is None:
        return _of_cells(cells, drawn, numbers)
    return _by_levers(cells, drawn, axes, numbers, lever, panel)


def varying(axes: Axes) -> dict[str, list[str]]:
    """Return the axes with more than one value, each with its values in order of appearance."""
    found: dict[str, dict[str, None]] = {}
    for texts in axes.values():
        for axis, text in texts.items():
            found.setdefault(axis, {})[_text(text)] = None
    return {axis: list(values) for axis, values in found.items() if len(values) > 1}


def influence(cells: Sequence[CellView], axes: Axes, axis: str) -> float:
    """Return how far the values of an axis are apart in throughput: ratio of means, as a log."""
    rates: dict[str, list[float]] = {}
    for cell in cells:
        if cell.best and cell.best.output_tok_s and cell.best.output_tok_s.mean > 0:
            value = _text(axes[cell.cell].get(axis))
            rates.setdefault(value, []).append(math.log(cell.best.output_tok_s.mean))
    means = [sum(logs) / len(logs) for logs in rates.values()]
    return max(means) - min(means) if means else 0.0


def by_influence(cells: Sequence[CellView], axes: Axes) -> dict[str, list[str]]:
    """Return the varying axes with their values, those that move the throughput most first."""
    known = varying({cell.cell: axes[cell.cell] for cell in cells})
    order = sorted(known, key=lambda axis: (-round(influence(cells, axes, axis), 12), axis))
    return {axis: known[axis] for axis in order}


def _text(value: str | None) -> str:
    return "not set" if value is None else value


def _levers(drawn: Sequence[CellView], axes: Axes) -> tuple[str | None, str | None]:
    """Return the axis of the colours and that of the panels."""
    known = by_influence(drawn, axes)
    lever = next((axis for axis, values in known.items() if len(values) <= FEW), None)
    others = (
        axis for axis, values in known.items() if axis != lever and len(values) <= _MOST_PANELS
    )
    return lever, next(others, None)


def _of_cells(
    cells: Sequence[CellView], drawn: Sequence[CellView], numbers: Mapping[str, int]
) -> Shared:
    """Give the base and the best a colour each; the others are grey."""
    base = cells[0] if cells else None
    others = [cell for cell in drawn if cell is not base]
    ranked = sorted(others, key=lambda cell: (cell.status == "failed", -_best(cell)))
    top = {cell.cell for cell in ranked[: len(COLOURS)]}
    looks: dict[str, Look] = {}
    entries = []
    free = iter(zip(COLOURS, MARKERS, strict=True))
    for cell in drawn:
        if cell is base:
            look = Look(PAGE, dashed=True)
        elif cell.cell in top:
            look = Look(*next(free))
        else:
            looks[cell.cell] = Look(MUTED)
            continue
        looks[cell.cell] = look
        notes = (["base"] if cell is base else []) + (["failed"] if cell.status == "failed" else [])
        entries.append(Entry(cell.cell, look, ", ".join(notes), (numbers[cell.cell],)))
    entries += _grey(looks, numbers)
    return Shared((Panel("", looks, ()),) if drawn else (), tuple(entries))


def _grey(looks: Mapping[str, Look], numbers: Mapping[str, int]) -> list[Entry]:
    """Return the entry of what has no colour; none where all have one."""
    grey = tuple(numbers[cell] for cell, look in looks.items() if look.colour == MUTED)
    return [Entry(f"{len(grey)} more", Look(MUTED), "named in the table", grey)] if grey else []


def _best(cell: CellView) -> float:
    return cell.best.output_tok_s.mean if cell.best and cell.best.output_tok_s else 0.0


def _by_levers(
    cells: Sequence[CellView],
    drawn: Sequence[CellView],
    axes: Axes,
    numbers: Mapping[str, int],
    lever: str,
    panel: str | None,
) -> Shared:
    base = cells[0]
    known = varying({cell.cell: axes[cell.cell] for cell in drawn})
    free = [*zip(COLOURS, MARKERS, strict=True), (MUTED, "o")]
    of_value = {value: Look(*one) for value, one in zip(known[lever], free, strict=False)}
    panels = []
    for value in known[panel] if panel else [""]:
        here = [
            cell
            for cell in drawn
            if cell is base or panel is None or _text(axes[cell.cell].get(panel)) == value
        ]
        looks = {cell.cell: of_value[_text(axes[cell.cell].get(lever))] for cell in here}
        if base.cell in looks:
            looks[base.cell] = Look(PAGE, dashed=True)
        panels.append(Panel(f"{panel} = {value}" if panel else "", looks, ()))
    entries = [
        Entry(
            f"{lever} = {value}",
            look,
            f"{len(these)} cells" if len(these) > 1 else these[0][0],
            tuple(number for _, number in these),
        )
        for value, look in of_value.items()
        if (
            these := [
                (cell.cell, numbers[cell.cell])
                for cell in drawn
                if cell is not base and _text(axes[cell.cell].get(lever)) == value
            ]
        )
    ]
    if base.loads:
        entries.insert(0, Entry(base.cell, Look(PAGE, dashed=True), "base", (0,)))
    return Shared(tuple(panels), tuple(entries))


def _one_at_a_time(
    cells: Sequence[CellView], drawn: Sequence[CellView], axes: Axes, numbers: Mapping[str, int]
) -> Shared | None:
    """Return a panel per lever; None where a cell differs from the base in several."""
    base = cells[0]
    names = varying({cell.cell: axes[cell.cell] for cell in drawn} | {base.cell: axes[base.cell]})
    differs: dict[str, list[CellView]] = {}
    for cell in drawn:
        if cell is base:
            continue
        changed = [a for a in names if axes[cell.cell].get(a) != axes[base.cell].get(a)]
        if len(changed) != 1:
            return None
        differs.setdefault(changed[0], []).append(cell)
    panels = []
    for axis in sorted(differs, key=lambda axis: (-influence(drawn, axes, axis), axis)):
        these = differs[axis]
        top = {cell.cell for cell in sorted(these, key=_best, reverse=True)[: len(COLOURS)]}
        free = iter(zip(COLOURS, MARKERS, strict=True))
        looks = {
            cell.cell: Look(*next(free)) if cell.cell in top else Look(MUTED) for cell in these
        }
        entries = [
            Entry(_text(axes[cell.cell].get(axis)), looks[cell.cell], "", (numbers[cell.cell],))
            for cell in these
            if cell.cell in top
        ]
        entries += _grey(looks, numbers)
        if base.loads:
            looks[base.cell] = Look(PAGE, dashed=True)
        panels.append(Panel(axis, looks, tuple(entries)))
    shared = (Entry(base.cell, Look(PAGE, dashed=True), "base", (0,)),) if base.loads else ()
    return Shared(tuple(panels), shared)
