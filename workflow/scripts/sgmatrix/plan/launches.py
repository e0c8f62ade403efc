"""Which launch of which cell serves which load point, in which order and as which attempt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import Layout
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.cells import Cell
from sgmatrix.plan.growth import share_out
from sgmatrix.plan.loads import LoadPoint, load_points
from sgmatrix.plan.overrides import Settings


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
    prompts: Mapping[str, Any],
    layout: Layout,
) -> list[tuple[str, str, tuple[LoadPoint, ...]]]:
    """Return (cell, launch, points) in the order of measuring; extra launches come last."""
    launches: list[tuple[str, str, tuple[LoadPoint, ...]]] = []
    extras: list[tuple[str, str, tuple[LoadPoint, ...]]] = []
    warmup = campaign.warmup.model_dump()
    for cell, number in _order(campaign, how):
        points = {
            point.load_id: point
            for point in load_points(
                how[cell].load, cells[cell], number, client=client, warmup=warmup, prompts=prompts
            )
        }
        for name, loads in share_out(layout, cell, number, cells[cell].key, list(points)):
            one = (cell, name, tuple(points[load] for load in loads))
            (launches if name == number else extras).append(one)
    return launches + extras
