"""Which launch of which cell serves which load point, in which order and as which attempt."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.hashing import digest
from sgmatrix.core.layout import Layout
from sgmatrix.core.version import HARNESS_VERSION
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.cells import Cell
from sgmatrix.plan.growth import share_out
from sgmatrix.plan.overrides import Settings
from sgmatrix.plan.parts import Load


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
    load: Load, cell: Cell, launch: str, client: dict[str, Any], warmup: dict[str, Any]
) -> tuple[LoadPoint, ...]:
    points = []
    for concurrency in load.concurrency:
        load_id = f"c{concurrency:04d}-i{load.input_len}-o{load.output_len}-{load.dataset}"
        requests = max(load.requests.min, load.requests.per_concurrency * concurrency, concurrency)
        seed = derive_seed(load.seed, launch, load_id)
        offered = {
            "load": load_id,
            "requests": requests,
            "seed": seed,
            "client": client["id"],
            "warmup": warmup,
        }
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


def _order(campaign: Campaign, how: Mapping[str, Settings]) -> Iterator[tuple[str, str]]:
    """Yield (cell, launch) in the order of measuring.

    Launches of all cells are interleaved, every second round backwards (ABBA), so that a
    drift of the machine over time falls on all cells alike.
    """
    for number in range(1, max(settings.launches for settings in how.values()) + 1):
        if campaign.rerun and str(number) not in campaign.rerun.launches:
            continue
        for cell in how if number % 2 else reversed(list(how)):
            if number <= how[cell].launches:
                yield cell, str(number)


def shared_out_launches(
    campaign: Campaign,
    cells: Mapping[str, Cell],
    how: Mapping[str, Settings],
    client: dict[str, Any],
    layout: Layout,
) -> list[tuple[str, str, tuple[LoadPoint, ...]]]:
    """Return (cell, launch, points) in the order of measuring; extra launches come last."""
    launches: list[tuple[str, str, tuple[LoadPoint, ...]]] = []
    extras: list[tuple[str, str, tuple[LoadPoint, ...]]] = []
    warmup = campaign.warmup.model_dump()
    for cell, number in _order(campaign, how):
        points = {
            point.load_id: point
            for point in _load_points(how[cell].load, cells[cell], number, client, warmup)
        }
        for name, loads in share_out(layout, cell, number, cells[cell].key, list(points)):
            one = (cell, name, tuple(points[load] for load in loads))
            (launches if name == number else extras).append(one)
    return launches + extras
