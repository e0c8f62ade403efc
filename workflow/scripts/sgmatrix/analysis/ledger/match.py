"""Which cells repeat what a ledger entry is about. No I/O.

A cell repeats a claim where it has all axis values of one alternative of `applies_to`. Compared
is what the server is given, however it is said: `{parallelism: tp4pp2}` is met by a cell with
the flags tp_size 4 and pp_size 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sgmatrix.plan.axes import axis_flags, canonical, is_variable, value_text
from sgmatrix.plan.bundles import parallelism_flags
from sgmatrix.plan.cells import Cell
from sgmatrix.plan.closed import AxisValue
from sgmatrix.plan.ledger import ANY, CONCURRENCY, Entry, Where, bounds_of

_ONE_GPU: Mapping[str, Any] = {
    "tp_size": 1,
    "pp_size": 1,
    "dp_size": 1,
    "ep_size": 1,
    "enable_dp_attention": False,
}


def repeating(
    entry: Entry, cells: Iterable[Cell], concurrency: Mapping[str, Iterable[int]]
) -> tuple[str, ...]:
    """Return the ids of the cells that repeat an entry's claim, in the order of the cells.

    Args:
        entry: the entry.
        cells: the cells of a campaign.
        concurrency: cell id to the concurrency of its load points.
    """
    return tuple(
        cell.id
        for cell in cells
        if any(_has(cell, where, concurrency.get(cell.id, ())) for where in entry.applies_to)
    )


def _has(cell: Cell, where: Where, concurrency: Iterable[int]) -> bool:
    """Tell whether a cell has all of these values."""
    return all(
        any(
            _is(axis, one, given)
            for one in (wanted if isinstance(wanted, list) else [wanted])
            for given in _given(cell, axis, concurrency)
        )
        for axis, wanted in where.items()
    )


def _given(cell: Cell, axis: str, concurrency: Iterable[int]) -> list[Any]:
    """Return what a cell has of an axis; several where it has several at once."""
    if axis == CONCURRENCY:
        return list(concurrency)
    if axis == "engine":
        return [cell.engine]
    if axis == "parallelism":
        return [_sizes(cell.flags)]
    if axis == "oea":
        return [cell.axes.get("oea", "off")]
    if axis == "patches":
        return list(cell.patches) or [None]
    if axis == "environment":
        value = cell.axes.get("environment")
        return str(value).split("+") if value is not None else [None]
    if is_variable(axis):
        return [cell.env.get(axis)]
    return [cell.flags.get(axis_flags(axis, [None])[0])]


def _is(axis: str, wanted: AxisValue, given: Any) -> bool:
    """Tell whether a value is the one that is asked for; true is not 1."""
    off = given in (None, False) or (axis == "oea" and value_text(axis, given) == "off")
    if wanted == ANY:
        return not off
    if (bounds := bounds_of(wanted)) is not None:
        number = isinstance(given, int | float) and not isinstance(given, bool)
        return (
            number and bounds.get("at_least", given) <= given and given < bounds.get("below", 1e300)
        )
    if axis == "parallelism":
        return bool(_sizes(parallelism_flags(str(wanted))) == given)
    if axis == "oea":
        return value_text(axis, wanted) == value_text(axis, given)
    if wanted in (None, False):
        return off
    wanted = canonical(axis, wanted)
    return isinstance(wanted, bool) is isinstance(given, bool) and wanted == canonical(axis, given)


def _sizes(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a server is spread over GPUs; what is not given is one."""
    return {name: flags.get(name) or one for name, one in _ONE_GPU.items()}
