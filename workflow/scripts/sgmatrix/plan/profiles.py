"""Profiles: a launch of one cell, beside the timed ones, with the engine's own profiler on.

No campaign has any: one is planned when `snakemake profile --config cell=<cell>` asks for it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.hashing import digest
from sgmatrix.core.layout import PROFILE, Layout
from sgmatrix.core.version import HARNESS_VERSION
from sgmatrix.plan.cells import Cell
from sgmatrix.plan.load_parts import Load
from sgmatrix.plan.loads import LoadPoint, load_points
from sgmatrix.plan.overrides import Settings
from sgmatrix.plan.probe_limits import room_of
from sgmatrix.plan.probes import untimed_attempt

_TOKENS_PER_STEP = 4
"""A wave writes at least so many tokens for each profiled step, so that it has a middle."""
_NEAREST = 3


@dataclass(frozen=True)
class AskedProfile:
    """What `--config` asks for."""

    cell: str
    concurrency: int | None
    """Requests at once; None: the most of the cell's load."""
    steps: int


@dataclass(frozen=True)
class PlannedProfile:
    """The profile of one cell."""

    cell: str
    launch: str
    attempt: int
    points: tuple[LoadPoint, ...]
    """One: the wave in whose middle the profiler looks on."""
    steps: int
    """Decode steps to look at."""
    running: int
    """Requests that the server is to decode at once before the profiler starts."""
    key: str

    def is_done(self, layout: Layout) -> bool:
        """Tell whether the attempt that is asked for is complete."""
        return (layout.attempt(self.cell, PROFILE, self.attempt) / "profile.json").exists()


def planned_profile(
    asked: AskedProfile,
    cells: Mapping[str, Cell],
    how: Mapping[str, Settings],
    client: dict[str, Any],
    prompts: Mapping[str, Any],
    layout: Layout,
    *,
    retry_failed: bool = False,
) -> PlannedProfile:
    """Return the profile that is asked for.

    Raises:
        SgmatrixError: `config_rejected` when there is no such cell, or its load is a rate only.
    """
    cell = cells.get(asked.cell)
    if cell is None:
        raise SgmatrixError(
            "config_rejected",
            f"--config cell={asked.cell} is no cell of this campaign",
            fix=f"one of {', '.join(nearest(asked.cell, cells))}",
        )
    own = how[cell.id].load
    width = asked.concurrency or max(own.concurrency, default=None) or own.max_concurrency
    if width is None:
        raise SgmatrixError(
            "config_rejected",
            f"the load of {cell.id} is a request rate, which says not how many to profile at once",
            fix="add concurrency=<requests at once> to --config",
        )
    load = _wave(own, width, asked.steps)
    points = load_points(load, cell, PROFILE, client=client, warmup={}, prompts=prompts)
    key = digest([cell.key, [point.key for point in points], HARNESS_VERSION, asked.steps])
    return PlannedProfile(
        cell=cell.id,
        launch=PROFILE,
        attempt=untimed_attempt(layout, cell.id, PROFILE, key, retry_failed=retry_failed),
        points=points,
        steps=asked.steps,
        running=min(width, room_of(cell.flags) or width),
        key=key,
    )


def _wave(own: Load, width: int, steps: int) -> Load:
    return own.model_copy(
        update={
            "concurrency": [width],
            "request_rate": [],
            "output_len": max(own.output_len, _TOKENS_PER_STEP * steps),
            "requests": own.requests.model_copy(
                update={"min": 1, "per_concurrency": 1, "duration_s": None}
            ),
            "slo": None,
        }
    )


def nearest(name: str, cells: Mapping[str, Cell]) -> list[str]:
    """Return the cells that a wrong name may mean; the first ones where none is like it."""
    return difflib.get_close_matches(name, cells, n=_NEAREST, cutoff=0.3) or list(cells)[:_NEAREST]
