"""The plan of a campaign: which launch of which cell serves which load point, in which order.

A pure function of the campaign and of what the history holds. Written to `plan.json` when a
run begins, so that every job, on whatever machine, reads the same plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sgmatrix.core.errors import Refusal, SgmatrixError
from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import Layout
from sgmatrix.core.version import HARNESS_VERSION
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.cells import Cell, digest, make_cell, value_text
from sgmatrix.plan.engines import Installation, engine_facts, installation
from sgmatrix.plan.growth import share_out
from sgmatrix.plan.limits import impossibilities
from sgmatrix.plan.matrix import Point, expand
from sgmatrix.plan.model import ModelFacts, model_facts


@dataclass(frozen=True)
class LoadPoint:
    """What one benchmark job offers to one launch."""

    load_id: str
    dataset: str
    concurrency: int
    input_len: int
    output_len: int
    requests: int
    seed: int
    key: str


@dataclass(frozen=True)
class Launch:
    """One server start of a cell and the points it serves, in order."""

    cell: str
    launch: str
    position: int
    """Place in the campaign's order, from 0."""
    attempt: int
    """The attempt that this plan asks for: a new one where the history has no complete one."""
    points: tuple[LoadPoint, ...]

    def is_done(self, layout: Layout) -> bool:
        """Tell whether the attempt that is asked for is complete."""
        return (layout.attempt(self.cell, self.launch, self.attempt) / "teardown.json").exists()


@dataclass(frozen=True)
class Plan:
    """A campaign, expanded."""

    campaign: str
    study: str
    cells: dict[str, Cell]
    launches: tuple[Launch, ...]
    model: ModelFacts
    engines: Mapping[str, Installation]
    client: dict[str, Any]
    settings: dict[str, Any]
    """Warm-up, server, deadlines and node as the campaign gives them."""

    def launch(self, cell: str, launch: str) -> Launch:
        return next(one for one in self.launches if (one.cell, one.launch) == (cell, launch))

    def points(self) -> Iterator[tuple[Launch, LoadPoint]]:
        for launch in self.launches:
            for point in launch.points:
                yield launch, point


def derive_seed(campaign_seed: int, launch: str, load_id: str) -> int:
    """Return the seed of one point: the same for all cells, so that arms see the same prompts."""
    text = f"{campaign_seed}/{launch}/{load_id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def asked_attempt(
    layout: Layout,
    cell: str,
    launch: str,
    points: Iterable[LoadPoint],
    *,
    rerun: bool,
    retry_failed: bool,
) -> int:
    """Return the attempt to ask for; unchanged as long as the last one is complete and counts.

    It counts when it was to serve these very points: a point's key covers the server, the load,
    the client and the harness. Snakemake would see a changed key too, but forgets its own
    records when results are copied or `.snakemake` is removed.
    """
    numbers = layout.attempt_numbers(cell, launch)
    if not numbers:
        return 1
    folder = layout.attempt(cell, launch, numbers[-1])
    final = read_json_or_none(folder / "teardown.json")
    spec = read_json_or_none(folder / "spec.json")
    if final is None or spec is None or rerun or (retry_failed and final["status"] != "ok"):
        return numbers[-1] + 1
    if not {point.key for point in points} <= {point["key"] for point in spec["points"]}:
        return numbers[-1] + 1
    return int(final["asked_attempt"])


def _load_points(
    campaign: Campaign, cell: Cell, launch: str, client: dict[str, Any]
) -> tuple[LoadPoint, ...]:
    load = campaign.load
    points = []
    for concurrency in load.concurrency:
        load_id = f"c{concurrency:04d}-i{load.input_len}-o{load.output_len}-{load.dataset}"
        requests = max(load.requests.min, load.requests.per_concurrency * concurrency, concurrency)
        seed = derive_seed(load.seed, launch, load_id)
        offered = {"load": load_id, "requests": requests, "seed": seed, "client": client["id"]}
        points.append(
            LoadPoint(
                load_id=load_id,
                dataset=load.dataset,
                concurrency=concurrency,
                input_len=load.input_len,
                output_len=load.output_len,
                requests=requests,
                seed=seed,
                key=digest({"cell": cell.key, "harness": HARNESS_VERSION, **offered}),
            )
        )
    return tuple(points)


def _client(campaign: Campaign, engine: Installation, model: ModelFacts) -> dict[str, Any]:
    kind = campaign.load.client.kind
    if kind == "auto":
        kind = "rust" if engine.client_extension else "python"
    if kind == "rust" and engine.client_extension is None:
        raise SgmatrixError(
            "client_setup",
            f"engines.{engine.name} has no Rust load client",
            fix="set load.client.kind to auto or python",
        )
    return {
        "id": f"sglang-{kind} {engine.version}",
        "kind": kind,
        "python": engine.python,
        "env": dict(engine.env),
        "extension": engine.client_extension,
        "vocab_size": model.vocab_size,
    }


def _installations(
    campaign: Campaign, points: list[Point], project: Path
) -> dict[str, Installation]:
    """Look at every engine that a cell or the load client uses."""
    names = {campaign.engine, campaign.load.client.engine or campaign.engine}
    names |= {str(point["engine"]) for point in points if point.get("engine") is not None}
    if unknown := sorted(names - campaign.engines.keys()):
        raise SgmatrixError(
            "config_rejected",
            f"axes.engine: {unknown[0]!r} is not one of {sorted(campaign.engines)}",
        )
    return {name: installation(name, campaign.engines[name], project) for name in sorted(names)}


def _cells(
    campaign: Campaign,
    points: list[Point],
    engines: Mapping[str, Installation],
    model: ModelFacts,
) -> dict[str, Cell]:
    """Return the cells by id; refuse all that cannot be, at once."""
    cells: dict[str, Cell] = {}
    problems: list[str] = []
    for point in points:
        try:
            cell = make_cell(
                point, campaign, engines[str(point.get("engine") or campaign.engine)], model
            )
        except SgmatrixError as refusal:
            problems.append(refusal.facts + (f"; fix: {refusal.fix}" if refusal.fix else ""))
            continue
        if cell.gpus > campaign.node.gpus:
            problems.append(
                f"cell {cell.id} needs {cell.gpus} GPUs, node.gpus = {campaign.node.gpus}"
            )
        problems += [
            f"cell {cell.id}: {why}" for why in impossibilities(cell.flags, model, campaign.load)
        ]
        twin = next((one.id for one in cells.values() if one.key == cell.key), None)
        if twin is not None and twin != cell.id:
            problems.append(f"cells {twin} and {cell.id} are the same server, spelled differently")
        if cell.id in cells:
            problems.append(f"two cells have the id {cell.id}: their values differ only in signs")
        cells[cell.id] = cell
    if problems:
        raise Refusal("config_rejected", list(dict.fromkeys(problems)))
    return cells


def _order(campaign: Campaign, cells: Mapping[str, Cell]) -> Iterator[tuple[str, str]]:
    """Yield (cell, launch) in the order of measuring.

    Launches of all cells are interleaved, every second round backwards (ABBA), so that a
    drift of the machine over time falls on all cells alike.
    """
    for number in range(1, campaign.launches + 1):
        if campaign.rerun and str(number) not in campaign.rerun.launches:
            continue
        for cell in cells if number % 2 else reversed(list(cells)):
            yield cell, str(number)


def _launches(
    campaign: Campaign, cells: Mapping[str, Cell], client: dict[str, Any], layout: Layout
) -> list[tuple[str, str, tuple[LoadPoint, ...]]]:
    """Return (cell, launch, points) in the order of measuring; extra launches come last."""
    launches: list[tuple[str, str, tuple[LoadPoint, ...]]] = []
    extras: list[tuple[str, str, tuple[LoadPoint, ...]]] = []
    for cell, number in _order(campaign, cells):
        points = {
            point.load_id: point for point in _load_points(campaign, cells[cell], number, client)
        }
        for name, loads in share_out(layout, cell, number, cells[cell].key, list(points)):
            one = (cell, name, tuple(points[load] for load in loads))
            (launches if name == number else extras).append(one)
    return launches + extras


def make_plan(
    campaign: Campaign,
    layout: Layout,
    project: Path,
    *,
    retry_failed: bool = False,
    attempts: Mapping[tuple[str, str], int] | None = None,
) -> Plan:
    """Expand a campaign.

    Args:
        campaign: the campaign.
        layout: where its history lies.
        project: the folder that relative paths of engines and models count from.
        retry_failed: ask for a new attempt of every launch that failed.
        attempts: (cell, launch) -> attempt, where a running invocation has decided it already.

    Raises:
        SgmatrixError: a refusal that names every cell that cannot be, before any launch.
    """
    model = model_facts(campaign.model, project, layout.root.parent / "models")
    points = expand(campaign)
    engines = _installations(campaign, points, project)
    client = _client(campaign, engines[campaign.load.client.engine or campaign.engine], model)
    cells = _cells(campaign, points, engines, model)
    rerun = campaign.rerun is not None
    launches = tuple(
        Launch(
            cell=cell,
            launch=name,
            position=position,
            attempt=(attempts or {}).get((cell, name))
            or asked_attempt(layout, cell, name, served, rerun=rerun, retry_failed=retry_failed),
            points=served,
        )
        for position, (cell, name, served) in enumerate(_launches(campaign, cells, client, layout))
    )
    return Plan(
        campaign=campaign.campaign,
        study=campaign.study,
        cells=cells,
        launches=launches,
        model=model,
        engines=engines,
        client=client,
        settings={
            name: getattr(campaign, name).model_dump()
            for name in ("warmup", "server", "deadlines", "node")
        },
    )


def cell_campaign(campaign: Campaign, cell: Cell) -> dict[str, Any]:
    """Return the campaign file that reproduces one cell alone."""
    data = campaign.model_dump(exclude_none=True)
    data |= {
        "design": "full",
        "axes": {axis: [value] for axis, value in cell.axes.items()},
        "include": [],
        "exclude": [],
        "rerun": {"launches": [str(n) for n in range(1, campaign.launches + 1)]},
    }
    return data


def plan_record(plan: Plan, campaign: Campaign, former: dict[str, Any] | None) -> dict[str, Any]:
    """Return what `plan.json` holds.

    The plan of one cell's rerun never shrinks the campaign's: what else was planned stays.
    """
    record: dict[str, Any] = {
        "campaign": plan.campaign,
        "study": plan.study,
        "harness": HARNESS_VERSION,
        "model": asdict(plan.model),
        "client": plan.client,
        "engines": {name: engine_facts(engine) for name, engine in plan.engines.items()},
        "settings": plan.settings,
        "cells": {
            cell.id: {
                **asdict(cell),
                "axes_text": {axis: value_text(value) for axis, value in cell.axes.items()},
                "reproduce": cell_campaign(campaign, cell),
            }
            for cell in plan.cells.values()
        },
        "launches": [asdict(launch) for launch in plan.launches],
    }
    if campaign.rerun is not None and former is not None:
        mine = {(launch.cell, launch.launch) for launch in plan.launches}
        record["cells"] = {**former["cells"], **record["cells"]}
        places = {(x["cell"], x["launch"]): x["position"] for x in former["launches"]}
        kept = [x for x in former["launches"] if (x["cell"], x["launch"]) not in mine]
        record["launches"] = kept + [
            {**x, "position": places.get((x["cell"], x["launch"]), x["position"])}
            for x in record["launches"]
        ]
    return record
