"""The ceilings of a whole matrix, before anything runs: which cell could be how fast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sgmatrix.analysis.ceiling.closed_loop import Server
from sgmatrix.analysis.ceiling.inputs import server_of
from sgmatrix.analysis.ceiling.points import PointCeiling, point_ceiling
from sgmatrix.core.facts.hardware import Device
from sgmatrix.core.facts.model import Shape


@dataclass(frozen=True)
class CellCeilings:
    """What one cell could reach."""

    cell: str
    server: Server
    points: Mapping[str, PointCeiling | None]
    """By load id; None: the weights leave no place for a request."""

    @property
    def best(self) -> tuple[str, PointCeiling] | None:
        """The load point with the highest practical throughput."""
        some = [(load, at) for load, at in self.points.items() if at is not None]
        return max(some, key=lambda one: one[1].practical_tok_s, default=None)

    @property
    def single(self) -> PointCeiling | None:
        """At concurrency 1, where that is a load point."""
        for at in self.points.values():
            if at is not None and at.hard.running == 1:
                return at
        return None


def planned_loads(launches: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return the load points of each cell by load id, from the launches of `plan.json`."""
    loads: dict[str, dict[str, Mapping[str, Any]]] = {}
    for launch in launches:
        mine = loads.setdefault(launch["cell"], {})
        for point in launch["points"]:
            mine.setdefault(point["load_id"], point)
    return loads


_OFFERED = ("input_len", "output_len", "concurrency", "max_concurrency", "request_rate")


def _identity(server: Server) -> tuple[Any, ...]:
    """Return what tells two servers of one model and device apart."""
    return (
        server.model.precision,
        server.parallel,
        server.pool,
        server.max_running,
        server.chunk,
        server.routing,
        server.speculation,
        server.mixed,
    )


def matrix_ceilings(
    record: Mapping[str, Any], shape: Shape, device: Device
) -> dict[str, CellCeilings]:
    """Return the ceilings of all cells of `plan.json`, by cell; equal servers are computed once.

    Cells whose engine runs on another kind of device are left out.

    Args:
        record: `cells` and `launches` as `plan.json` has them.
        shape: of the model.
        device: what each device can do.
    """
    loads = planned_loads(record["launches"])
    known: dict[tuple[Any, ...], PointCeiling | None] = {}
    found = {}
    for name, cell in record["cells"].items():
        if cell.get("device", device.kind) != device.kind:
            continue
        server = server_of(cell, shape, device)
        points: dict[str, PointCeiling | None] = {}
        for load, point in loads.get(name, {}).items():
            key = (*_identity(server), *(point.get(one) for one in _OFFERED))
            if key not in known:
                known[key] = point_ceiling(server, point)
            points[load] = known[key]
        found[name] = CellCeilings(name, server, points)
    return found
