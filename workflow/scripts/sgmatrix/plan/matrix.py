"""Axes to cells: the full product or one axis at a time, plus named extra cells."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan.campaign import AxisValue, Campaign

Point = dict[str, AxisValue]
"""One point of the matrix: axis name to value; None means that the flag is not given."""


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


def canonical(value: AxisValue) -> AxisValue:
    """Return the one spelling of a value: 0.90 and 0.9 are the same, 8.0 is 8."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def expand(campaign: Campaign) -> list[Point]:
    """Return the points of the matrix in the order of the file.

    Raises:
        SgmatrixError: `config_rejected` when two cells are the same.
    """
    points: list[Point] = []
    for point in _points(campaign):
        tidy = {axis: canonical(value) for axis, value in point.items()}
        if tidy in points:
            raise SgmatrixError(
                "config_rejected",
                f"axes or include give the same cell twice: {_show(tidy)}",
                fix="remove one of the equal values",
            )
        points.append(tidy)
    return points


def _show(point: Mapping[str, AxisValue]) -> str:
    return ", ".join(f"{axis}={value}" for axis, value in point.items() if value is not None)
