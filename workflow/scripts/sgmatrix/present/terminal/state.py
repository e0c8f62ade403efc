"""What is known of a running campaign, from its plan and the events of its jobs. No I/O.

Not here  how it looks (`frame`), where events come from (`progress`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.layout import NODE_PROBE, UNTIMED
from sgmatrix.plan.plan import Plan
from sgmatrix.present.clean import clean
from sgmatrix.present.estimate import Estimate, LaunchName, clock
from sgmatrix.present.terminal.cells import CellState
from sgmatrix.present.terminal.readings import Readings

Event = Mapping[str, Any]

_PHASES = {
    "waiting": "waits for the node",
    "starting": "starts its server",
    "ready": "is ready",
    "warmup": "warms up",
    "point": "is measured at",
    "stopping": "stops its server",
}


@dataclass
class Running:
    """A launch that is under way."""

    who: str
    phase: str
    since_s: float
    """Unix time at which the phase began."""
    attempt: int | None = None


class State:
    """A campaign under way; `apply` takes in one event and returns what is to be said of it."""

    def __init__(
        self, plan: Plan, estimate: Estimate, todo: Iterable[LaunchName], now_s: float
    ) -> None:
        self.plan = plan
        self.estimate = estimate
        self.todo = list(todo)
        self.start_s = now_s
        self.loads = {
            (one.cell, one.launch): {point.load_id for point in one.points} for one in plan.launches
        }
        self.several_launches = any(one.launch != "1" for one in plan.launches)
        self.points = sum(len(self.loads[launch]) for launch in self.todo)
        """That this run is to do; `points_done` of them are over."""
        self.points_done = 0
        self.began_s: dict[LaunchName, float] = {}
        self.cells = {
            cell.id: CellState(
                cell.id,
                tuple(f"axis_{axis}" for axis in cell.axes),
                sum(len(loads) for (of, _), loads in self.loads.items() if of == cell.id),
                sum(of == cell.id for of, _ in self.loads),
            )
            for cell in plan.cells.values()
            if any(of == cell.id for of, _ in self.loads)
        }
        self.running: dict[LaunchName, Running] = {}
        """The one of the newest event last."""
        self.phase = "the plan is made"
        """In a sentence, of the newest event."""
        self.last: str = ""
        """The last point, in a line."""
        self.readings = Readings()

    # -- what is past ----------------------------------------------------------------------

    def recall(
        self, launch: LaunchName, points: Mapping[str, Event], status: str, reason: str | None
    ) -> None:
        """Take in a launch that was over before this run."""
        cell = self.cells[launch[0]]
        for load, point in points.items():
            cell.add(launch[1], load, point)
        cell.end(launch[1], self.loads[launch], status, reason)

    # -- what happens ----------------------------------------------------------------------

    def apply(self, event: Event) -> list[str]:
        """Take in one event; return the lines that tell of it, mostly one or none.

        Raises:
            KeyError, TypeError, ValueError: the event is damaged.
        """
        launch = (event["cell"], event["launch"])
        if event["launch"] == NODE_PROBE:
            return self._node(event)
        if event["launch"] in UNTIMED:
            return self._untimed(launch, event)
        if launch not in self.loads:
            return []
        return self._timed(launch, event)

    def _timed(self, launch: LaunchName, event: Event) -> list[str]:
        kind, cell = event["event"], self.cells[launch[0]]
        who = self.who(launch)
        if kind in ("waiting", "leftovers"):
            return self._around(who, event)
        if kind == "starting":
            if launch not in self.todo:  # forced, for a reason that the plan does not know
                self.todo.append(launch)
                self.points += len(self.loads[launch])
            self.began_s[launch] = event["time_s"]
            cell.begin(launch[1])
        if kind in _PHASES:
            self._enter(launch, who, event)
        if kind == "ready":
            took_s = event["time_s"] - self.began_s.get(launch, event["time_s"])
            return [f"{who}: ready after {took_s:.1f} s"]
        if kind == "point_done":
            told = clean(point_text(event))
            self.points_done += 1
            cell.add(launch[1], event["load"], event)
            self.last = f"{who}  {told}" if len(self.cells) > 1 else told
            return [f"{who}: {told}"]
        if kind == "launch_done":
            if launch in self.todo:
                self.todo.remove(launch)
            if launch in self.began_s:
                self.estimate.done(launch, event["time_s"] - self.began_s[launch])
            self.running.pop(launch, None)
            cell.end(launch[1], self.loads[launch], event["status"], event["reason"])
            return [f"{who}: {_end(event)}"]
        return []

    def _untimed(self, launch: LaunchName, event: Event) -> list[str]:
        who = f"the {launch[1]} of {launch[0]}"
        if event["event"] in _PHASES:
            self._enter(launch, who, event)
        elif event["event"] == "launch_done":
            self.running.pop(launch, None)
            return [f"{event['cell']}: {event['launch']} {_end(event)}"]
        return []

    def _node(self, event: Event) -> list[str]:
        if event["event"] == "waiting":
            return self._around("the probe of the node", event)
        if event["event"] == "node_probe":
            self.phase = "the node is probed"
            self.running[NODE_PROBE, NODE_PROBE] = Running("the node", "is probed", event["time_s"])
        elif event["event"] == "node_probe_done":
            self.running.pop((NODE_PROBE, NODE_PROBE), None)
            return [clean(f"the node: {'; '.join(event['lines'])}")]
        return []

    def _enter(self, launch: LaunchName, who: str, event: Event) -> None:
        """Begin a phase of a launch."""
        phase = _PHASES[event["event"]]
        if event["event"] == "point":
            phase += f" {event['load']}"
        former = self.running.pop(launch, None)
        attempt = event.get("attempt", former.attempt if former else None)
        self.running[launch] = Running(who, phase, event["time_s"], attempt)
        self.phase = f"{who} {phase}"

    def _around(self, who: str, event: Event) -> list[str]:
        """Tell what a launch found on the node before it began."""
        if event["event"] == "leftovers":
            ended = "; ".join(event["ended"])
            return [clean(f"{who}: ended what an earlier run had left: {ended}")]
        self.phase = f"{who} {_PHASES['waiting']}"
        return [
            clean(
                f"{who}: waits for {note['cell']} of campaign {note['campaign']}, "
                f"pid {note['pid']}, since {note['since']}"
            )
            for note in event["holders"]
            if note["campaign"] != self.plan.campaign
        ]

    # -- what is asked ---------------------------------------------------------------------

    def who(self, launch: LaunchName) -> str:
        """Return a launch as it is told: its number only where a cell has several."""
        return launch[0] + (f" launch {launch[1]}" if self.several_launches else "")

    def left_s(self, now_s: float) -> float | None:
        """Return the expected time of what is left to do; None where nothing is planned."""
        if not self.points:
            return None
        left = self.estimate.remaining_s(self.todo)
        running = [self.began_s[launch] for launch in self.todo if launch in self.began_s]
        return max(left - (now_s - max(running)), 1.0) if running else left

    def clock(self, now_s: float) -> str:
        """Return what stands before each line that is said."""
        passed = f"{clock(now_s - self.start_s):>7}"
        if (left := self.left_s(now_s)) is None:
            return passed
        return f"{passed}  {self.points_done:>3}/{self.points} points  about {clock(left)} left"


def _end(event: Event) -> str:
    if event["status"] == "skipped":
        return "not needed, its comparison is decided"
    return "done" if event["status"] == "ok" else f"failed: {event['reason']}"


def point_text(event: Event) -> str:
    """Return a finished point in a line."""
    if event["status"] != "ok":
        return f"{event['load']}  {event['status']}: {event['reason']}"
    tpot = event.get("tpot_ms_mean")
    latency = f"  TPOT {tpot:.2f} ms" if tpot is not None else ""
    return f"{event['load']}  {event['output_tok_s']:,.0f} tok/s{latency}  {event['validity']}"
