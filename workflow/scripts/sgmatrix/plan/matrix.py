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
        SgmatrixError: `config_rejected` when two cells are the same, when a condition of
            `exclude` meets no cell (a misspelled one would leave nothing out, silently), or when
            no cell is left.
    """
    points: list[Point] = []
    left_out = [0] * len(campaign.exclude)
    for point in _points(campaign):
        tidy = {axis: canonical(value) for axis, value in point.items()}
        hits = [i for i, condition in enumerate(campaign.exclude) if _meets(tidy, condition)]
        for i in hits:
            left_out[i] += 1
        if hits:
            continue
        if tidy in points:
            raise SgmatrixError(
                "config_rejected",
                f"axes or include give the same cell twice: {_show(tidy)}",
                fix="remove one of the equal values",
            )
        points.append(tidy)
    for condition, count in zip(campaign.exclude, left_out, strict=True):
        if not count:
            raise SgmatrixError(
                "config_rejected",
                f"exclude: no cell has {', '.join(f'{a}={v}' for a, v in condition.items())}",
                fix="correct the values, or remove the condition",
            )
    if not points:
        raise SgmatrixError(
            "config_rejected", "exclude leaves no cell", fix="remove a condition of exclude"
        )
    return points


def _meets(point: Point, condition: Mapping[str, AxisValue | list[AxisValue]]) -> bool:
    """Tell whether all values of a condition hold; a list holds when one of its values does."""
    return all(
        point.get(axis) in [canonical(v) for v in (value if isinstance(value, list) else [value])]
        for axis, value in condition.items()
    )


def _show(point: Mapping[str, AxisValue]) -> str:
    return ", ".join(f"{axis}={value}" for axis, value in point.items() if value is not None)
