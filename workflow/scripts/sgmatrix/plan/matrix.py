"""Axes to cells: the full product or one axis at a time, plus named extra cells."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.hashing import digest
from sgmatrix.plan.axes import Point, canonical
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.closed import AxisValue

Condition = Mapping[str, AxisValue | list[AxisValue]]
"""Axis values that hold together; a list holds when one of its values does."""


@dataclass(frozen=True)
class Matrix:
    """The points of a campaign in the order of the file, and what is wrong with its axes."""

    points: tuple[Point, ...]
    excluded: tuple[str, ...]
    """Cells that `exclude` leaves out, as text for people."""
    problems: tuple[str, ...]


def _points(campaign: Campaign) -> Iterator[Point]:
    names = list(campaign.axes)
    base: Point = {name: values[0] for name, values in campaign.axes.items()}
    if campaign.design == "full":
        for chosen in itertools.product(*campaign.axes.values()):
            yield dict(zip(names, chosen, strict=True))
    else:
        yield base
        for name, values in campaign.axes.items():
            for value in values[1:]:
                yield {**base, name: value}
    for extra in campaign.include:
        yield {**base, **extra}


def expand(campaign: Campaign) -> Matrix:
    """Return the matrix of a campaign.

    Its problems: cells that are there twice, conditions of `exclude` and `overrides` that meet
    no cell (a misspelled one would change nothing, silently), and that no cell is left.
    """
    problems: list[str] = []
    points: list[Point] = []
    excluded: list[str] = []
    seen: set[str] = set()
    everything = [
        {axis: canonical(axis, value) for axis, value in point.items()}
        for point in _points(campaign)
    ]
    for point in everything:
        if any(meets(campaign, point, condition) for condition in campaign.exclude):
            excluded.append(show(point))
            continue
        key = digest(point)
        if key in seen:
            problems.append(
                f"axes or include give the same cell twice: {show(point)}; fix: remove one of "
                "the equal values"
            )
            continue
        seen.add(key)
        points.append(point)
    for i, condition in enumerate(campaign.exclude):
        problems += _idle(campaign, f"exclude[{i}]", condition, everything)
    for i, override in enumerate(campaign.overrides):
        problems += _idle(campaign, f"overrides[{i}].where", override.where, points)
    if not points and not problems:
        problems.append("exclude leaves no cell; fix: remove a condition of exclude")
    return Matrix(tuple(points), tuple(excluded), tuple(problems))


def _idle(
    campaign: Campaign, place: str, condition: Condition, points: list[Point]
) -> Iterator[str]:
    """Yield why a condition does nothing, if it does."""
    axes = {"engine", *(axis for point in points for axis in point)}
    if unknown := [axis for axis in condition if axis not in axes]:
        near = difflib.get_close_matches(unknown[0], sorted(axes), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {sorted(axes)}"
        yield f"{place}.{unknown[0]}: no axis of this campaign, {hint}"
    elif not any(meets(campaign, point, condition) for point in points):
        yield (
            f"{place}: no cell has {show(condition)}; fix: correct the values, or remove the "
            "condition"
        )


def meets(campaign: Campaign, point: Point, condition: Condition) -> bool:
    """Tell whether all values of a condition hold; an engine that is no axis is the campaign's."""
    full: Point = {"engine": campaign.engine, **point}
    return all(
        axis in full
        and any(
            _equal(full[axis], canonical(axis, one))
            for one in (value if isinstance(value, list) else [value])
        )
        for axis, value in condition.items()
    )


def _equal(one: AxisValue, other: AxisValue) -> bool:
    """Tell whether two values are the same; true is not 1."""
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def show(point: Mapping[str, Any]) -> str:
    """Return axis values as text for messages."""
    return ", ".join(f"{axis}={value}" for axis, value in point.items() if value is not None) or (
        "no value"
    )
