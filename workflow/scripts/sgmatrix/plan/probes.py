"""Probes: launches beside the timed ones, in which experts are counted and quality is measured.

Counting puts work into every step of the server, so that no timed launch ever counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.hashing import digest
from sgmatrix.core.layout import PROBE, Layout
from sgmatrix.core.version import HARNESS_VERSION
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.cells import Cell
from sgmatrix.plan.loads import LoadPoint, load_points
from sgmatrix.plan.oea import oea_of
from sgmatrix.plan.overrides import Settings
from sgmatrix.plan.probe_limits import room_of

_ARGUMENTS = (
    *("--expert-distribution-recorder-mode", "stat"),
    *("--expert-distribution-recorder-buffer-size", "-1"),
    "--enable-custom-logit-processor",
)


@dataclass(frozen=True)
class PlannedProbe:
    """The probe of one cell."""

    cell: str
    launch: str
    attempt: int
    points: tuple[LoadPoint, ...]
    """One for each batch size: so many requests at once, decoded together."""
    arguments: tuple[str, ...]
    """Server arguments that the timed launches do not have."""
    reference: str | None
    """Cell whose own words are forced upon this one, to see how likely it finds them."""
    prompts: int
    tokens: int
    key: str

    def is_done(self, layout: Layout) -> bool:
        """Tell whether the attempt that is asked for is complete."""
        return (layout.attempt(self.cell, PROBE, self.attempt) / "probe.json").exists()


def planned_probes(
    campaign: Campaign,
    cells: Mapping[str, Cell],
    how: Mapping[str, Settings],
    client: dict[str, Any],
    prompts: Mapping[str, Any],
    layout: Layout,
    *,
    retry_failed: bool = False,
) -> tuple[PlannedProbe, ...]:
    """Return the probes of a campaign: of the cells with OEA on, and of those they stand beside.

    The latter come first.
    """
    if campaign.probe.experts == "off":
        return ()
    on = [cell for cell in cells.values() if cell.oea is not None and cell.oea["on"]]
    beside = {name for cell in on if (name := _reference(cells, cell)) is not None}
    probed = [*(cells[name] for name in cells if name in beside), *on]
    return tuple(
        _probe(campaign, cells, cell, how[cell.id], client, prompts, layout, retry_failed)
        for cell in probed
    )


def _probe(
    campaign: Campaign,
    cells: Mapping[str, Cell],
    cell: Cell,
    settings: Settings,
    client: dict[str, Any],
    prompts: Mapping[str, Any],
    layout: Layout,
    retry_failed: bool,
) -> PlannedProbe:
    rule = campaign.probe
    room = min(rule.max_batch, room_of(cell.flags) or rule.max_batch)
    asked = [c for c in settings.load.concurrency if c <= room] or [1]
    batches = list(rule.batches or asked)
    load = settings.load.model_copy(
        update={
            "concurrency": batches,
            "request_rate": [],
            "input_len": _prompt_len(settings.load.input_len, batches),
            "output_len": rule.steps,
            "requests": settings.load.requests.model_copy(
                update={"min": 1, "per_concurrency": 1, "duration_s": None}
            ),
            "slo": None,
        }
    )
    points = load_points(load, cell, PROBE, client=client, warmup={}, prompts=prompts)
    reference = _reference(cells, cell)
    key = digest(
        [
            *(cell.key, [point.key for point in points], HARNESS_VERSION, _ARGUMENTS),
            *(cells[reference].key if reference else None, rule.prompts, rule.tokens),
        ]
    )
    return PlannedProbe(
        cell=cell.id,
        launch=PROBE,
        attempt=untimed_attempt(layout, cell.id, PROBE, key, retry_failed=retry_failed),
        points=points,
        arguments=_ARGUMENTS,
        reference=reference,
        prompts=rule.prompts,
        tokens=rule.tokens,
        key=key,
    )


def _prompt_len(wanted: int, batches: Iterable[int]) -> int:
    """Return a prompt length near the wanted one of which no number of prompts is a batch size.

    The recorder does not say which steps are prefills; they are told by their number of tokens.
    """
    return next(n for n in itertools.count(wanted) if all(batch % n for batch in batches))


def _reference(cells: Mapping[str, Cell], cell: Cell) -> str | None:
    """Return the cell that is the same but for OEA, which is off there."""
    if oea_of(cell.axes["oea"]) is None:
        return cell.id
    axes = {**cell.axes, "oea": None}
    for other in cells.values():
        off = "oea" in other.axes and oea_of(other.axes["oea"]) is None
        if off and {**other.axes, "oea": None} == axes:
            return other.id
    return None


def untimed_attempt(layout: Layout, cell: str, launch: str, key: str, *, retry_failed: bool) -> int:
    """Return the attempt to ask for: a new one where the last is not complete, or another one.

    Args:
        layout: where the history lies.
        cell: cell id.
        launch: `probe` or `profile`, which also names its record.
        key: of what is asked for now.
        retry_failed: whether one that failed is done again.
    """
    numbers = layout.attempt_numbers(cell, launch)
    if not numbers:
        return 1
    folder = layout.attempt(cell, launch, numbers[-1])
    names = ("teardown.json", f"{launch}.json")
    final, made = (read_json_or_none(folder / name) for name in names)
    if final is None or made is None or made["key"] != key:
        return numbers[-1] + 1
    if retry_failed and made["status"] != "ok":
        return numbers[-1] + 1
    return int(final["asked_attempt"])
