"""Where the wall time of a campaign went, launch by launch: what loads the GPUs, and what does not.

Read from the records of the history and from `events.jsonl`, which the jobs append to; pure
functions of them. Times are Unix seconds of the node.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgmatrix.dataset.history import Attempt

START, WARMUP, LOAD, CLIENT, JOBS, STOP = (
    "start",
    "warm-up",
    "load",
    "client and records",
    "between jobs",
    "teardown",
)
PARTS = (START, WARMUP, LOAD, CLIENT, JOBS, STOP)
"""Parts of a launch, from the start of its server to the proof that its devices are empty."""


@dataclass(frozen=True)
class LaunchTime:
    """The parts of one launch in seconds; together they are all of it."""

    cell: str
    launch: str
    attempt: int
    started_s: float
    closed_s: float
    seconds: Mapping[str, float]
    """By part: `load` are the measured windows, `client and records` the rest of the points."""
    gaps_s: tuple[float, ...]
    """Between two jobs of this launch: from the end of one's work to the begin of the next's."""

    @property
    def total_s(self) -> float:
        return self.closed_s - self.started_s


@dataclass(frozen=True)
class Occupancy:
    """Of a campaign, or of the stretches of it that one node ran."""

    launches: tuple[LaunchTime, ...]
    """In the order of their starts."""
    handovers_s: tuple[float, ...]
    """From the proven teardown of a launch to the start of the next one's server."""

    def sums_s(self) -> dict[str, float]:
        """Return the seconds of each part over all launches."""
        return {part: sum(one.seconds[part] for one in self.launches) for part in PARTS}

    @property
    def wall_s(self) -> float:
        """All launches and the times between them."""
        return sum(one.total_s for one in self.launches) + sum(self.handovers_s)

    @property
    def loaded_share(self) -> float | None:
        """Return the share in which requests were running: warm-up and load; None: no launch."""
        sums = self.sums_s()
        return (sums[WARMUP] + sums[LOAD]) / self.wall_s if self.launches else None


def read_events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a campaign; a line that was cut off is left out."""
    found = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and {"time_s", "event", "cell", "launch"} <= event.keys():
            found.append(event)
    return found


def occupancy(
    attempts: Iterable[Attempt],
    events: Sequence[Mapping[str, Any]],
    *,
    stretch_s: float = 60.0,
) -> Occupancy:
    """Return where the time of the complete launches went.

    Args:
        attempts: of the history; interrupted, skipped and failed ones are left out.
        events: of `events.jsonl`.
        stretch_s: a longer pause between two launches belongs to no campaign: it was stopped then.
    """
    launches = sorted(
        (one for attempt in attempts if (one := _launch(attempt, events)) is not None),
        key=lambda one: one.started_s,
    )
    pauses = [after.started_s - before.closed_s for before, after in itertools.pairwise(launches)]
    return Occupancy(tuple(launches), tuple(one for one in pauses if 0 <= one <= stretch_s))


def _launch(attempt: Attempt, events: Sequence[Mapping[str, Any]]) -> LaunchTime | None:
    final = attempt.final or {}
    times = (final.get("closed") or {}).get("times") or {}
    if final.get("status") != "ok" or not {"started", "ready", "stopping", "closed"} <= set(times):
        return None
    seconds = dict.fromkeys(PARTS, 0.0)
    seconds[START] = times["ready"] - times["started"]
    seconds[STOP] = times["closed"] - times["stopping"]
    seconds[WARMUP] = (final.get("warmup") or {}).get("took_s") or 0.0
    for planned in attempt.spec["points"]:
        point = attempt.point(planned["load_id"]) or {}
        seconds[LOAD] += point.get("duration_s") or 0.0
    identity = attempt.identity
    mine = [
        event
        for event in events
        if (event["cell"], event["launch"]) == (identity["cell"], identity["launch"])
        and times["started"] <= event["time_s"] <= times["closed"]
    ]
    gaps = _gaps(mine, times, seconds[WARMUP])
    seconds[JOBS] = sum(gaps)
    whole = times["closed"] - times["started"]
    seconds[CLIENT] = max(0.0, whole - sum(seconds.values()))
    return LaunchTime(
        identity["cell"],
        identity["launch"],
        identity["attempt"],
        times["started"],
        times["closed"],
        seconds,
        tuple(gaps),
    )


def _gaps(
    events: Sequence[Mapping[str, Any]], times: Mapping[str, float], warmup_s: float
) -> list[float]:
    """Return the gaps from ready to warm-up, from step to step, and to the end."""
    gaps = []
    free_s: float | None = times["ready"]
    for event in sorted(events, key=lambda one: one["time_s"]):
        begins = event["event"] in ("warmup", "point", "stopping")
        if begins and free_s is not None:
            gaps.append(max(0.0, event["time_s"] - free_s))
            free_s = None
        if event["event"] == "warmup":
            free_s = event["time_s"] + warmup_s
        elif event["event"] == "point_done":
            free_s = event["time_s"]
    return gaps
