"""The findings that concern a campaign: its cells repeat them, or they are about its model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sgmatrix.analysis.ledger.match import repeating
from sgmatrix.analysis.ledger.retest import differing, here_of
from sgmatrix.plan.ledger import Entry
from sgmatrix.plan.plan import Plan


@dataclass(frozen=True)
class Finding:
    """An entry that concerns a campaign."""

    entry: Entry
    cells: tuple[str, ...]
    """Cells that repeat its claim; none: it is about the model alone."""
    retest: tuple[str, ...]
    """Why it may not hold here; empty: its conditions are those of the campaign."""

    def record(self) -> dict[str, Any]:
        """Return what `plan.json` says of it."""
        entry = self.entry.model_dump(exclude_none=True)
        return {**entry, "cells": list(self.cells), "retest": list(self.retest)}


def findings(
    entries: Iterable[Entry], plan: Plan, node: Callable[[], Mapping[str, Any]]
) -> tuple[Finding, ...]:
    """Return the findings that concern a plan, in the order of the ledger.

    Args:
        entries: of the ledger.
        plan: of the campaign.
        node: gives the facts of the node; asked only where something is found.
    """
    concurrency = _concurrency(plan)
    met = [(one, repeating(one, plan.cells.values(), concurrency)) for one in entries]
    name = plan.model.name.casefold()
    met = [
        (one, cells)
        for one, cells in met
        if cells or (one.conditions.model or "").casefold() == name
    ]
    if not met:
        return ()
    facts = node()
    return tuple(
        Finding(
            one,
            cells,
            differing(
                one.conditions,
                here_of(plan.model.name, [plan.cells[cell] for cell in cells or plan.cells], facts),
            ),
        )
        for one, cells in met
    )


def _concurrency(plan: Plan) -> dict[str, set[int]]:
    """Return the concurrency of the load points of each cell."""
    found: dict[str, set[int]] = {cell: set() for cell in plan.cells}
    for launch, point in plan.points():
        if point.concurrency is not None:
            found[launch.cell].add(point.concurrency)
    return found
