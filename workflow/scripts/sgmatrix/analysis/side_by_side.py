"""Which rounds of a comparison had their arms measured side by side: only these are pairs.

What a machine does between two launches that are far apart would be taken for a difference of the
arms.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from sgmatrix.core.clock import parse_utc

Row = Mapping[str, Any]
Lookup = Callable[[str, str, str], Row | None]
"""(cell, launch, load id) to the row or record of its current point; None where there is none."""

_USUAL = 4.0
"""Times the usual distance of two arms: either may run first, and one may take longer."""
_GRACE_S = 3600.0
"""And an hour: launches of seconds wait longer than they take."""


def rounds_apart(
    planned: Row, find: Lookup, rounds: int, arms: tuple[str, str] = ("baseline", "variant")
) -> set[int]:
    """Return the rounds, from 0, whose two arms were not measured side by side.

    A launch of another round lies between them, since one arm was repeated later, or alone. Or
    they are far more apart than those of most rounds: the last round's arm was repeated, or the
    campaign stopped between the two.
    """
    begun = _begun(planned, find, rounds)
    order = sorted((when, number, arm) for (number, arm), when in begun.items())
    places = {(number, arm): place for place, (_, number, arm) in enumerate(order)}
    apart, distances_s = set[int](), dict[int, float]()
    for number in range(rounds):
        one, other = ((number, arm) for arm in arms)
        if one not in begun or other not in begun:
            continue
        distances_s[number] = abs((begun[one] - begun[other]).total_seconds())
        first, last = sorted((places[one], places[other]))
        if any(between != number for _, between, _ in order[first:last]):
            apart.add(number)
    if distances_s:
        most_s = _USUAL * statistics.median_low(distances_s.values()) + _GRACE_S
        apart |= {number for number, distance_s in distances_s.items() if distance_s > most_s}
    return apart


def _begun(planned: Row, find: Lookup, rounds: int) -> dict[tuple[int, str], datetime]:
    """Return (round, arm) to when its first point was begun; without one it is not there."""
    begun = {}
    for number, one in enumerate(planned["rounds"][:rounds]):
        for arm, launch in one.items():
            cell = planned["variant" if arm == "variant" else "baseline"]
            times = [
                when
                for load in planned["loads"]
                if (when := _started(find(cell, launch, load))) is not None
            ]
            if times:
                begun[number, arm] = min(times)
    return begun


def _started(row: Row | None) -> datetime | None:
    when = row.get("started_at") if row is not None else None
    return parse_utc(when) if isinstance(when, str) else when
