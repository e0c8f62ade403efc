"""Which launch of which cell serves which load point, in which order and as which attempt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import Layout, launch_number
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.cells import Cell
from sgmatrix.plan.compare import Comparison
from sgmatrix.plan.growth import share_out
from sgmatrix.plan.loads import LoadPoint, load_points
from sgmatrix.plan.overrides import Settings
from sgmatrix.plan.rounds import Condition, arms_of, conditions, turns


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
    condition: Condition | None = None
    """What it depends on whether it runs at all; None: it always does."""

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
    rule: str | None = None,
) -> int:
    """Return the attempt to ask for; unchanged as long as the last one is complete and counts.

    It counts when it was to serve these very points: a point's key covers the server, the load,
    the client and the harness. Snakemake would see a changed key too, but forgets its own
    records when results are copied or `.snakemake` is removed. One that was skipped, because its
    comparison was decided, counts as long as what decided it is the same (`rule`).
    """
    numbers = layout.attempt_numbers(cell, launch)
    if not numbers:
        return 1
    folder = layout.attempt(cell, launch, numbers[-1])
    final = read_json_or_none(folder / "teardown.json")
    spec = read_json_or_none(folder / "spec.json")
    if final is None or spec is None or rerun:
        return numbers[-1] + 1
    if final["status"] == "skipped":
        same = rule is not None and spec.get("rule") == rule
        return int(final["asked_attempt"]) if same else numbers[-1] + 1
    if retry_failed and final["status"] != "ok":
        return numbers[-1] + 1
    if not {point.key for point in points} <= {point["key"] for point in spec["points"]}:
        return numbers[-1] + 1
    return int(final["asked_attempt"])


def shared_out_launches(
    campaign: Campaign,
    cells: Mapping[str, Cell],
    how: Mapping[str, Settings],
    client: dict[str, Any],
    prompts: Mapping[str, Any],
    layout: Layout,
    noisy: Mapping[str, int],
) -> list[tuple[str, str, tuple[LoadPoint, ...]]]:
    """Return (cell, launch, points) in the order of measuring; extra launches come last.

    `noisy` are the cells with two launches in a round, and in how many rounds.
    """
    launches: list[tuple[str, str, tuple[LoadPoint, ...]]] = []
    extras: list[tuple[str, str, tuple[LoadPoint, ...]]] = []
    warmup = campaign.warmup.model_dump()
    for cell, number in turns({cell: how[cell].launches for cell in how}, noisy):
        if campaign.rerun and number not in campaign.rerun.launches:
            continue
        points = {
            point.load_id: point
            for point in load_points(
                how[cell].load,
                cells[cell],
                str(launch_number(number)),  # a round has the same prompts
                client=client,
                warmup=warmup,
                prompts=prompts,
            )
        }
        for name, loads in share_out(layout, cell, number, cells[cell].key, list(points)):
            one = (cell, name, tuple(points[load] for load in loads))
            (launches if name == number else extras).append(one)
    return launches + extras


def partners_of_failed(compared: Sequence[Comparison], layout: Layout) -> set[tuple[str, str]]:
    """Return (cell, launch) of every round in which one launch failed, that one included."""
    again = set()
    for one in compared:
        for planned in one.rounds:
            members = [(cell, planned[arm]) for arm, cell in arms_of(one)]
            if any(_has_failed(layout, *member) for member in members):
                again |= {
                    (cell, launch) for cell, launch in members if _was_begun(layout, cell, launch)
                }
    return again


def _was_begun(layout: Layout, cell: str, launch: str) -> bool:
    """Tell whether the newest attempt of a launch measured, or was to: it was not skipped."""
    final = _newest(layout, cell, launch)
    return final is not None and final["status"] != "skipped"


def _has_failed(layout: Layout, cell: str, launch: str) -> bool:
    final = _newest(layout, cell, launch)
    return final is not None and final["status"] == "failed"


def _newest(layout: Layout, cell: str, launch: str) -> dict[str, Any] | None:
    numbers = layout.attempt_numbers(cell, launch)
    if not numbers:
        return None
    final: dict[str, Any] | None = read_json_or_none(
        layout.attempt(cell, launch, numbers[-1]) / "teardown.json"
    )
    return final


def placed_launches(
    shares: Sequence[tuple[str, str, tuple[LoadPoint, ...]]],
    compared: Sequence[Comparison],
    always: Mapping[str, int],
    layout: Layout,
    *,
    rerun: bool,
    retry_failed: bool,
    decided: Mapping[tuple[str, str], int],
) -> Iterator[Launch]:
    """Yield the launches with their places, conditions and attempts.

    Args:
        shares: as `shared_out_launches` returns them.
        compared: the campaign's comparisons.
        always: cell id to the launches that run whatever a comparison says.
        layout: where the history lies.
        rerun: whether every launch is asked for anew.
        retry_failed: whether those that failed are, and with them their partners in a round of
            a comparison: an arm that is repeated alone, long after its partner, is no pair of it.
        decided: attempts that a running invocation has asked for already.
    """
    optional = conditions(compared, always)
    attempts: dict[tuple[str, str], int] = {}
    again = partners_of_failed(compared, layout) if retry_failed else set()
    for position, (cell, name, points) in enumerate(shares):
        condition = optional.get((cell, name))
        rule = None if condition is None else condition.rule(attempts)
        attempts[cell, name] = decided.get((cell, name)) or asked_attempt(
            layout,
            cell,
            name,
            points,
            rerun=rerun or (cell, name) in again,
            retry_failed=retry_failed,
            rule=rule,
        )
        yield Launch(cell, name, position, attempts[cell, name], points, condition)
