"""The plan of a campaign: which launch of which cell serves which load point, in which order.

A pure function of the campaign and of what the history holds. Written to `plan.json` when a
run begins, so that every job, on whatever machine, reads the same plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sgmatrix.core.layout import NOISE, Layout, launch_number
from sgmatrix.core.version import HARNESS_VERSION
from sgmatrix.plan.axes import value_text
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.cells import Cell
from sgmatrix.plan.checked_cells import checked_cells, installations_of
from sgmatrix.plan.client import client_facts
from sgmatrix.plan.compare import Comparison, comparisons, noise_launch
from sgmatrix.plan.engines import Installation, engine_facts
from sgmatrix.plan.launches import Launch, placed_launches, shared_out_launches
from sgmatrix.plan.loads import LoadPoint
from sgmatrix.plan.matrix import expand
from sgmatrix.plan.model import ModelFacts, model_facts
from sgmatrix.plan.overrides import Settings
from sgmatrix.plan.probe_limits import refuse_impossible
from sgmatrix.plan.probes import PlannedProbe, planned_probes
from sgmatrix.plan.profiles import AskedProfile, PlannedProfile, planned_profile
from sgmatrix.plan.prompts import prompt_facts, refuse_too_few
from sgmatrix.plan.rounds import launches_needed


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
    """Warm-up, server and node as the campaign gives them."""
    excluded: tuple[str, ...]
    """Cells that the campaign leaves out, as text."""
    compared: tuple[Comparison, ...]
    probes: tuple[PlannedProbe, ...]
    profiles: tuple[PlannedProfile, ...]
    """Only what this invocation asks for; no campaign has any."""
    reproduce: Mapping[str, dict[str, Any]]
    """For each cell, the campaign that reproduces it alone."""

    def launch(self, cell: str, launch: str) -> Launch:
        return next(one for one in self.launches if (one.cell, one.launch) == (cell, launch))

    def absences(self) -> list[str]:
        """Return what is not on this machine, so that it can plan and not launch."""
        lines = [
            f"engines.{name}.python = {one.absent} is not there; sglang {one.version} at "
            f"{one.python} answers for it"
            for name, one in sorted(self.engines.items())
            if one.absent is not None
        ]
        if self.model.absent:
            lines.append(
                f"model.path = {self.model.path} is not there; "
                f"config/models/{self.model.facts}.yaml speaks for it"
            )
        return lines

    def points(self) -> Iterator[tuple[Launch, LoadPoint]]:
        for launch in self.launches:
            for point in launch.points:
                yield launch, point


def make_plan(
    campaign: Campaign,
    layout: Layout,
    project: Path,
    *,
    retry_failed: bool = False,
    attempts: Mapping[tuple[str, str], int] | None = None,
    profile: AskedProfile | None = None,
) -> Plan:
    """Expand a campaign.

    Args:
        campaign: the campaign.
        layout: where its history lies.
        project: the folder that relative paths of engines and models count from.
        retry_failed: ask for a new attempt of every launch that failed.
        attempts: (cell, launch) -> attempt, where a running invocation has decided it already.
        profile: the profile that is asked for beside the campaign.

    Raises:
        SgmatrixError: a refusal that names every cell that cannot be, before any launch.
    """
    model = model_facts(campaign.model, project, layout.root.parent / "models")
    matrix = expand(campaign)
    points = list(matrix.points)
    engines = installations_of(campaign, points, project)
    source = engines[campaign.load.client.engine or campaign.engine]
    client = client_facts(campaign.load, source, model)
    prompts = prompt_facts(campaign.load, project)
    cells, how = checked_cells(campaign, matrix, engines, model, project)
    compared = comparisons(campaign, cells, {cell: how[cell].load for cell in cells})
    rerun = campaign.rerun
    always = {cell: settings.launches for cell, settings in how.items()}
    counts, noisy = launches_needed(always, compared)
    if rerun:
        repeated = [launch_number(name) for name in rerun.launches if name.endswith(NOISE)]
        noisy = dict.fromkeys(cells, max(repeated, default=0))
    how = {cell: replace(settings, launches=counts[cell]) for cell, settings in how.items()}
    launches = tuple(
        placed_launches(
            shared_out_launches(campaign, cells, how, client, prompts, layout, noisy),
            compared,
            always,
            layout,
            rerun=rerun is not None,
            retry_failed=retry_failed,
            decided=attempts or {},
        )
    )
    probes = planned_probes(
        campaign, cells, how, client, prompts, layout, retry_failed=retry_failed
    )
    if not rerun:
        refuse_impossible({one.cell: one.points for one in probes}, cells, model, prompts)
    profiles = (
        ()
        if profile is None
        else (
            planned_profile(
                profile, cells, how, client, prompts, layout, retry_failed=retry_failed
            ),
        )
    )
    refuse_too_few(prompts, (point for launch in launches for point in launch.points))
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
            for name in ("warmup", "telemetry", "validity", "server", "node")
        },
        excluded=matrix.excluded,
        compared=compared,
        probes=() if rerun else probes,
        profiles=profiles,
        reproduce={
            cell.id: cell_campaign(campaign, cell, how[cell.id], noisy.get(cell.id, 0))
            for cell in cells.values()
        },
    )


def cell_campaign(campaign: Campaign, cell: Cell, settings: Settings, noise: int) -> dict[str, Any]:
    """Return the campaign file that reproduces one cell alone, with all of its launches.

    `noise` is the number of rounds in which it has a second one.
    """
    data = campaign.model_dump(exclude_none=True)
    words = {axis: str(cell.axes.get(axis) or "").split("+") for axis in ("environment", "patches")}
    override = {"where": {}, "flags": dict(settings.flags), "env": dict(settings.env)}
    data |= {
        "design": "full",
        "axes": {axis: [value] for axis, value in cell.axes.items()},
        "include": [],
        "exclude": [],
        # what an override says of server and environment is repeated, the rest stands above
        "overrides": [override] if settings.flags or settings.env else [],
        "environments": {
            name: env for name, env in data["environments"].items() if name in words["environment"]
        },
        "patches": {
            name: patch for name, patch in data["patches"].items() if name in words["patches"]
        },
        "unset": list(cell.unset),
        "launches": settings.launches,
        "load": settings.load.model_dump(exclude_none=True),
        "deadlines": settings.deadlines.model_dump(),
        "compare": [],
        "ledger": campaign.ledger,  # null is not the default
        "rerun": {
            "launches": [
                *(str(number) for number in range(1, settings.launches + 1)),
                *(noise_launch(number) for number in range(1, noise + 1)),
            ],
        },
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
        "excluded": list(plan.excluded),
        "cells": {
            cell.id: {
                **asdict(cell),
                "axes_text": {axis: value_text(axis, value) for axis, value in cell.axes.items()},
                "reproduce": plan.reproduce[cell.id],
            }
            for cell in plan.cells.values()
        },
        "launches": [_launch_record(plan, launch) for launch in plan.launches],
        "comparisons": [one.record() for one in plan.compared],
        "probes": [asdict(probe) for probe in plan.probes],
        "profiles": [asdict(profile) for profile in plan.profiles],
    }
    if campaign.rerun is not None and former is not None:
        mine = {(launch.cell, launch.launch) for launch in plan.launches}
        record["cells"] = {**former["cells"], **record["cells"]}
        record |= {name: former.get(name, []) for name in ("comparisons", "probes")}
        places = {(x["cell"], x["launch"]): x["position"] for x in former["launches"]}
        kept = [x for x in former["launches"] if (x["cell"], x["launch"]) not in mine]
        record["launches"] = kept + [
            {**x, "position": places.get((x["cell"], x["launch"]), x["position"])}
            for x in record["launches"]
        ]
    return record


def _launch_record(plan: Plan, launch: Launch) -> dict[str, Any]:
    """Return what `plan.json` says of a launch; a condition with the hash of what decides it."""
    record = asdict(launch)
    if launch.condition is not None:
        attempts = {(one.cell, one.launch): one.attempt for one in plan.launches}
        record["condition"]["rule"] = launch.condition.rule(attempts)
    return record
