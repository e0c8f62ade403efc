"""Axes to cells: the full product or one axis at a time, plus named extra cells."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan.axes import Point, canonical
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.parts import AxisValue


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


def expand(campaign: Campaign) -> list[Point]:
    """Return the points of the matrix in the order of the file.

    Raises:
        SgmatrixError: `config_rejected` when two cells are the same, when a condition of
            `exclude` meets no cell (a misspelled one would leave nothing out, silently), or when
            no cell is left.
    """
    points: list[Point] = []
    left_out = [0] * len(campaign.exclude)
    for point in _points(campaign):
        tidy = {axis: canonical(axis, value) for axis, value in point.items()}
        hits = [i for i, condition in enumerate(campaign.exclude) if meets(tidy, condition)]
        for i in hits:
            left_out[i] += 1
        if hits:
            continue
        if tidy in points:
            raise SgmatrixError(
                "config_rejected",
                f"axes or include give the same cell twice: {show(tidy)}",
                fix="remove one of the equal values",
            )
        points.append(tidy)
    for condition, count in zip(campaign.exclude, left_out, strict=True):
        if not count:
            raise SgmatrixError(
                "config_rejected",
                f"exclude: no cell has {show(condition)}",
                fix="correct the values, or remove the condition",
            )
    if not points:
        raise SgmatrixError(
            "config_rejected", "exclude leaves no cell", fix="remove a condition of exclude"
        )
    return points


def excluded(campaign: Campaign) -> list[str]:
    """Return the cells that `exclude` leaves out, as text for people."""
    points = [{axis: canonical(axis, v) for axis, v in p.items()} for p in _points(campaign)]
    return [show(p) for p in points if any(meets(p, one) for one in campaign.exclude)]


def meets(point: Point, condition: Mapping[str, AxisValue | list[AxisValue]]) -> bool:
    """Tell whether all values of a condition hold; a list holds when one of its values does."""
    return all(
        point.get(axis)
        in [canonical(axis, v) for v in (value if isinstance(value, list) else [value])]
        for axis, value in condition.items()
    )


def show(point: Mapping[str, Any]) -> str:
    """Return axis values as text for messages."""
    return ", ".join(f"{axis}={value}" for axis, value in point.items() if value is not None)
