"""Progress of a running campaign on the terminal, from the events that the jobs append.

A line per thing that happened; between them, on a terminal, one line that is rewritten, and
elsewhere a line every ten seconds: which cell, which phase, points done, elapsed, expected.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any, TextIO

from sgmatrix.core.layout import NODE_PROBE, UNTIMED, Layout
from sgmatrix.plan.plan import Plan
from sgmatrix.present.estimate import Estimate, clock

_POLL_S = 0.25
_HEARTBEAT_S = 10.0

_PHASES = {
    "waiting": "waits for the node",
    "starting": "starts its server",
    "ready": "is ready",
    "warmup": "warms up",
    "point": "is measured at",
    "stopping": "stops its server",
}


class Progress:
    """Follows the event file in a thread of the main process."""

    def __init__(self, plan: Plan, layout: Layout, out: TextIO | None = None) -> None:
        self.plan = plan
        self.path = layout.events
        self.out = out or sys.stderr
        self.estimate = Estimate(plan, layout)
        self.todo = [(one.cell, one.launch) for one in plan.launches if not one.is_done(layout)]
        sizes = {(one.cell, one.launch): len(one.points) for one in plan.launches}
        self.points = sum(sizes[launch] for launch in self.todo)
        self.points_done = 0
        self.began_s: dict[tuple[str, str], float] = {}
        self.phase = "the plan is made"
        self.start_s = time.time()
        self.said_s = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def start(self) -> None:
        if self.todo:
            launches = f"{len(self.todo)} of {len(self.plan.launches)} launches"
            self._say(f"{self.plan.campaign}: {launches} to do, {self.points} load points")
        self._size = self.path.stat().st_size if self.path.exists() else 0
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()
        self._clear()

    def _follow(self) -> None:
        rest = b""
        while True:
            last = self._ended.wait(_POLL_S)
            try:
                with self.path.open("rb") as file:
                    file.seek(self._size)
                    data = file.read()
            except OSError:
                data = b""
            self._size += len(data)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                try:
                    self._event(json.loads(line))
                except (ValueError, KeyError):
                    continue
            if last:
                return
            self._tick()

    def _event(self, event: dict[str, Any]) -> None:
        launch = (event["cell"], event["launch"])
        if event["launch"] == NODE_PROBE:
            self._node(event)
            return
        if event["launch"] in UNTIMED:
            self._untimed(event)
            return
        if launch not in self.estimate.assumed:
            return
        kind = event["event"]
        who = event["cell"] + (f" launch {event['launch']}" if self._several_launches() else "")
        if kind in ("waiting", "leftovers"):
            self._around(who, event)
            return
        if kind in _PHASES:
            self.phase = f"{who} {_PHASES[kind]}" + (f" {event['load']}" if kind == "point" else "")
        if kind == "starting":
            self._expect(launch)
            self.began_s[launch] = event["time_s"]
        elif kind == "ready":
            took_s = event["time_s"] - self.began_s.get(launch, event["time_s"])
            self._say(f"{who}: ready after {took_s:.1f} s")
        elif kind == "point_done":
            self.points_done += 1
            self._say(f"{who}: {_point(event)}")
        elif kind == "launch_done":
            if launch in self.todo:
                self.todo.remove(launch)
            if launch in self.began_s:
                self.estimate.done(launch, event["time_s"] - self.began_s[launch])
            self._say(f"{who}: {_end(event)}")

    def _untimed(self, event: dict[str, Any]) -> None:
        if event["event"] in _PHASES:
            self.phase = f"the {event['launch']} of {event['cell']} {_PHASES[event['event']]}"
        elif event["event"] == "launch_done":
            self._say(f"{event['cell']}: {event['launch']} {_end(event)}")

    def _node(self, event: dict[str, Any]) -> None:
        if event["event"] == "waiting":
            self._around("the probe of the node", event)
        elif event["event"] == "node_probe":
            self.phase = "the node is probed"
        elif event["event"] == "node_probe_done":
            self._say(f"the node: {'; '.join(event['lines'])}")

    def _around(self, who: str, event: dict[str, Any]) -> None:
        """Tell what a launch found on the node before it began."""
        if event["event"] == "leftovers":
            self._say(f"{who}: ended what an earlier run had left: {'; '.join(event['ended'])}")
            return
        for note in event["holders"]:
            if note["campaign"] != self.plan.campaign:
                holder = f"{note['cell']} of campaign {note['campaign']}, pid {note['pid']}"
                self._say(f"{who}: waits for {holder}, since {note['since']}")

    def _expect(self, launch: tuple[str, str]) -> None:
        """Count a launch that was forced, for a reason that the plan does not know."""
        if launch not in self.todo:
            self.todo.append(launch)
            self.points += len(self.plan.launch(*launch).points)

    def _several_launches(self) -> bool:
        return any(one.launch != "1" for one in self.plan.launches)

    def _tick(self) -> None:
        if not self.todo and not self.plan.profiles:
            return
        if self.out.isatty():
            self._clear()
            self.out.write(f"{self._state()}  {self.phase}"[:118])
            self.out.flush()
        elif time.time() - self.said_s > _HEARTBEAT_S:
            self._say(self.phase)

    def _state(self) -> str:
        now = time.time()
        if not self.points:
            return f"{clock(now - self.start_s):>7}"
        left = self.estimate.remaining_s(self.todo)
        running = [self.began_s[launch] for launch in self.todo if launch in self.began_s]
        if running:
            left = max(left - (now - max(running)), 1.0)
        done = f"{self.points_done:>3}/{self.points}"
        return f"{clock(now - self.start_s):>7}  {done} points  about {clock(left)} left"

    def _clear(self) -> None:
        if self.out.isatty():
            self.out.write("\r\x1b[K")

    def _say(self, text: str) -> None:
        self.said_s = time.time()
        self._clear()
        print(f"{self._state()}  {text}", file=self.out, flush=True)


def _end(event: dict[str, Any]) -> str:
    if event["status"] == "skipped":
        return "not needed, its comparison is decided"
    return "done" if event["status"] == "ok" else f"failed: {event['reason']}"


def _point(event: dict[str, Any]) -> str:
    if event["status"] != "ok":
        return f"{event['load']}  {event['status']}: {event['reason']}"
    tpot = event.get("tpot_ms_mean")
    latency = f"  TPOT {tpot:.2f} ms" if tpot is not None else ""
    return f"{event['load']}  {event['output_tok_s']:,.0f} tok/s{latency}  {event['validity']}"
