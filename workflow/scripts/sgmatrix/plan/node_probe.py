"""The probe of the node, as planned: for which engine and GPUs, and whether it is to be done again.

It is asked for anew when a launch is to come and the node, the engine or the GPUs that the cells
take are others than those it was made for. Where nothing is to be launched, as at home with copied
results, the record that is there stands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sgmatrix.core.hashing import digest
from sgmatrix.plan.cells import Cell
from sgmatrix.plan.engines import Installation

VERSION = 1
"""Of what is measured and how; raise it, and nodes are probed again."""
_GROUPS = (2, 4, 8)
"""GPUs whose all-reduce is measured, as far as the cells take so many."""


@dataclass(frozen=True)
class PlannedNodeProbe:
    """What a probe of the node is to measure."""

    engine: str
    """Whose interpreter measures: that of the campaign's first cell."""
    engine_version: str
    engine_key: str
    """Digest of its packages and environment: another one is probed again."""
    python: str
    env: Mapping[str, str]
    device: str
    gpus: int
    """What the largest cell takes."""
    groups: tuple[int, ...]
    """So many GPUs reduce together, each number in turn."""
    node: Mapping[str, str | None] | None
    """Which machine; None where the jobs run on another one than the plan is made on."""
    key: str = ""
    attempt: int = 1

    @property
    def asked(self) -> str:
        """What is asked for, in a word: another one makes Snakemake probe again."""
        return f"{self.key[:16]}-{self.attempt}"

    def is_asked_anew(self, record: Mapping[str, Any]) -> bool:
        """Tell whether another record is asked for than the one that is there."""
        return (record["key"], record["attempt"]) != (self.key, self.attempt)


def planned_node_probe(
    cells: Iterable[Cell],
    engines: Mapping[str, Installation],
    record: Mapping[str, Any] | None,
    *,
    node: Mapping[str, str | None] | None,
    launches_to_come: bool,
    one_cell: bool,
    retry_failed: bool,
) -> PlannedNodeProbe:
    """Return the probe that a campaign asks for.

    Args:
        cells: of the plan, in its order.
        engines: by their names.
        record: `node-probe.json`; None: the node was not probed.
        node: which machine; None: not known here.
        launches_to_come: whether anything is to be launched.
        one_cell: one cell is repeated alone; the campaign's engine stays.
        retry_failed: ask again where it failed.
    """
    every = list(cells)
    engine = engines[every[0].engine]
    gpus = max(cell.gpus for cell in every)
    groups = {*_GROUPS, *(cell.gpus for cell in every)}
    planned = PlannedNodeProbe(
        engine=engine.name,
        engine_version=engine.version,
        engine_key=digest([engine.lock, dict(engine.env)]),
        python=engine.python,
        env=dict(engine.env),
        device=every[0].device,
        gpus=gpus,
        groups=tuple(sorted(n for n in groups if 2 <= n <= gpus)),
        node=node,
    )
    what = {name: value for name, value in vars(planned).items() if name not in ("key", "attempt")}
    planned = replace(planned, key=digest([VERSION, what]))
    if record is None:
        return planned
    again = retry_failed and record["status"] == "failed"
    if again or (launches_to_come and not _fits(record, planned, one_cell=one_cell)):
        return replace(planned, attempt=record["attempt"] + 1)
    return replace(planned, key=record["key"], attempt=record["attempt"])


def _fits(record: Mapping[str, Any], planned: PlannedNodeProbe, *, one_cell: bool) -> bool:
    """Tell whether what was measured holds for a plan."""
    made_for = record["asked"]
    same = [] if one_cell else ["engine_key", "device"]
    nodes: Collection[Any] = (made_for["node"], planned.node)
    return (
        record["version"] == VERSION
        and all(made_for[name] == getattr(planned, name) for name in same)
        and set(planned.groups) <= set(made_for["groups"])
        and (None in nodes or made_for["node"] == planned.node)
    )
