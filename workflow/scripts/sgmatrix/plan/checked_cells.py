"""The cells of a campaign, each one possible, all of them different; or every reason why not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sgmatrix.core.errors import Refusal, SgmatrixError
from sgmatrix.plan.axes import Point, given_by
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.cells import Cell, cell_id, make_cell, server_flags
from sgmatrix.plan.engines import Installation, installation
from sgmatrix.plan.limits import impossibilities
from sgmatrix.plan.matrix import Matrix, show
from sgmatrix.plan.model import ModelFacts
from sgmatrix.plan.oea import oea_obstacles, oea_of
from sgmatrix.plan.oea_plugin import plugin_obstacle
from sgmatrix.plan.overrides import Settings, settings_of


def installations_of(
    campaign: Campaign, points: list[Point], project: Path
) -> dict[str, Installation]:
    """Look at every engine that a cell or the load client uses."""
    names = {campaign.engine, campaign.load.client.engine or campaign.engine}
    names |= {str(point["engine"]) for point in points if point.get("engine") is not None}
    return {name: installation(name, campaign.engines[name], project) for name in sorted(names)}


def checked_cells(
    campaign: Campaign,
    matrix: Matrix,
    engines: Mapping[str, Installation],
    model: ModelFacts,
    project: Path,
) -> tuple[dict[str, Cell], dict[str, Settings]]:
    """Return the cells and how each is launched, by cell id; refuse all that cannot be, at once."""
    cells: dict[str, Cell] = {}
    how: dict[str, Settings] = {}
    by_key: dict[str, str] = {}
    ids: dict[str, str] = {}
    problems = [*matrix.problems, *_value_problems(campaign, matrix.points)]
    for point in matrix.points:
        engine = engines[str(point.get("engine") or campaign.engine)]
        try:
            settings = settings_of(campaign, point)
            cell = make_cell(point, campaign, engine, model, settings, project)
            problems += [
                f"cell {cell.id}: {why}"
                for why in _obstacles(campaign, cell, engine, model, settings)
            ]
        except SgmatrixError as refusal:
            if (told := _told(refusal)) not in problems:  # a single value's fault is told already
                problems.append(f"cell {cell_id(point)}: {told}")
            continue
        twin = by_key.setdefault(cell.key, cell.id)
        if twin != cell.id:
            problems.append(f"cells {twin} and {cell.id} are the same server, spelled differently")
        # some file systems take `TP8` and `tp8` for one name
        twin = ids.setdefault(cell.id.casefold(), cell.id)
        if cell.id in cells or twin != cell.id:
            other = next(one for one in cells.values() if one.id.casefold() == cell.id.casefold())
            problems.append(
                f"two cells have the id {cell.id}: {show(other.axes)} and {show(point)}; fix: "
                "change a name or a value, so that they differ in more than signs or case"
            )
        cells[cell.id] = cell
        how[cell.id] = settings
    if problems:
        raise Refusal("config_rejected", list(dict.fromkeys(problems)))
    return cells, how


def _value_problems(campaign: Campaign, points: Iterable[Point]) -> Iterator[str]:
    """Yield what is wrong with single axis values, so that one does not hide another."""
    seen: dict[str, list[object]] = {}
    for point in points:
        for axis, value in point.items():
            if value in seen.setdefault(axis, []):
                continue
            seen[axis].append(value)
            try:
                given = given_by({axis: value}, campaign.environments, campaign.patches)
                server_flags(given.flags, {})
            except SgmatrixError as refusal:
                yield _told(refusal)


def _told(refusal: SgmatrixError) -> str:
    return refusal.facts + (f"; fix: {refusal.fix}" if refusal.fix else "")


def _widest(cell: Cell, settings: Settings) -> int:
    """Return how many requests a batch of a cell can have."""
    load, cap = settings.load, cell.flags.get("max_running_requests")
    closed = [c for one in load.workloads() for c in one.concurrency]
    asked = max([*closed, load.max_concurrency or 0]) or 1
    return min(asked, cap) if isinstance(cap, int) else asked


def _obstacles(
    campaign: Campaign, cell: Cell, engine: Installation, model: ModelFacts, settings: Settings
) -> Iterator[str]:
    """Yield why a cell cannot be measured here."""
    if cell.gpus > campaign.node.gpus:
        yield f"needs {cell.gpus} GPUs, node.gpus = {campaign.node.gpus}"
    yield from impossibilities(cell.flags, model, settings.load)
    if cell.oea is None:
        return
    oea = oea_of(cell.axes["oea"])
    if oea is not None:
        yield from oea_obstacles(
            oea, cell.flags, model, device=cell.device, widest=_widest(cell, settings)
        )
    if (why := plugin_obstacle(engine)) is not None:  # with OEA off it is there as well, silent
        yield why
