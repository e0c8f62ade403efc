"""Which points of two campaigns are of the same cell and the same load, and which are not.

A cell is the same where its id and the values of its axes are; a load point where its id and all
that is offered are. Seeds may differ: they choose other prompts of the same kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sgmatrix.dataset.results import Results, Row

_OFFERED = (
    "dataset",
    "concurrency",
    "request_rate",
    "max_concurrency",
    "burstiness",
    "input_len",
    "output_len",
    "requests",
    "duration_s",
    "min_requests",
    "prompts",
)


@dataclass(frozen=True)
class Matched:
    """One load point of a cell in both campaigns."""

    cell: str
    load_id: str
    base: tuple[Row, ...]
    """One per launch."""
    other: tuple[Row, ...]


@dataclass(frozen=True)
class Match:
    """Both campaigns, set side by side."""

    points: tuple[Matched, ...]
    """In the order of the base's plan."""
    cells_only: tuple[tuple[str, ...], tuple[str, ...]]
    """Cells that only the base, only the other campaign has."""
    loads_only: tuple[tuple[str, ...], tuple[str, ...]]
    """`cell: load id` of cells that both have, likewise."""
    unlike: tuple[str, ...]
    """What bears the same name and is not the same, in a line each."""

    @property
    def cells(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.cell for one in self.points))


def match(base: Results, other: Results) -> Match:
    """Set two campaigns side by side."""
    here, there = _planned(base.plan), _planned(other.plan)
    both = [cell for cell in here if cell in there]
    points, unlike = [], []
    loads_only: tuple[list[str], list[str]] = ([], [])
    for cell in both:
        axes = [_axes(one.plan["cells"][cell]) for one in (base, other)]
        if differs := list(_unlike(*axes)):
            unlike.append(f"cell {cell}: {', '.join(differs)}")
            continue
        for load, point in here[cell].items():
            if load not in there[cell]:
                loads_only[0].append(f"{cell}: {load}")
            elif differs := list(_unlike(_offer(point), _offer(there[cell][load]))):
                unlike.append(f"cell {cell}, load {load}: {', '.join(differs)}")
            else:
                points.append(
                    Matched(cell, load, _rows(base, cell, load), _rows(other, cell, load))
                )
        loads_only[1].extend(f"{cell}: {load}" for load in there[cell] if load not in here[cell])
    return Match(
        tuple(points),
        (
            tuple(cell for cell in here if cell not in there),
            tuple(cell for cell in there if cell not in here),
        ),
        (tuple(loads_only[0]), tuple(loads_only[1])),
        tuple(unlike),
    )


def _planned(plan: Mapping[str, Any]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return cell to load id to what is offered."""
    planned: dict[str, dict[str, Mapping[str, Any]]] = {cell: {} for cell in plan["cells"]}
    for launch in plan["launches"]:
        for point in launch["points"]:
            planned[launch["cell"]].setdefault(point["load_id"], point)
    return planned


def _rows(results: Results, cell: str, load: str) -> tuple[Row, ...]:
    return tuple(row for row in results.rows if row["cell"] == cell and row["load_id"] == load)


def _axes(cell: Mapping[str, Any]) -> dict[str, Any]:
    return {name: text for name, text in cell["axes_text"].items() if text is not None}


def _offer(point: Mapping[str, Any]) -> dict[str, Any]:
    offer = {name: point.get(name) for name in _OFFERED}
    prompts = dict(offer["prompts"] or {})
    prompts.pop("path", None)  # the file's hash tells what is in it, wherever it lies
    return {**offer, "prompts": prompts}


def _unlike(base: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*base, *other]):
        if base.get(name) != other.get(name):
            yield f"{name} {shown(base.get(name))} against {shown(other.get(name))}"


def shown(value: Any) -> str:
    """Return a fact as text, short enough for a line."""
    text = "not there" if value is None else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
