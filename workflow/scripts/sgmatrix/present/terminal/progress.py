"""Progress of a running campaign on the terminal, from the events that the jobs append.

A line per thing that happened. On a terminal a block below them shows the campaign in one view;
elsewhere, or where plain text is asked for, a line every ten seconds says the phase.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import threading
import time
from typing import Any, TextIO

from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import Layout
from sgmatrix.plan.plan import Plan
from sgmatrix.present.estimate import Estimate
from sgmatrix.present.terminal.frame import FAILED, RUNNING, frame
from sgmatrix.present.terminal.readings import read_readings
from sgmatrix.present.terminal.screen import Screen, Size, is_live
from sgmatrix.present.terminal.state import State

_POLL_S = 0.25
_REDRAW_S = 1.0
_HEARTBEAT_S = 10.0


class Progress:
    """Follows the event file in a thread of the main process."""

    def __init__(self, plan: Plan, layout: Layout, out: TextIO | None = None) -> None:
        self.plan = plan
        self.layout = layout
        self.out = out or sys.stderr
        todo = [(one.cell, one.launch) for one in plan.launches if not one.is_done(layout)]
        self.state = State(plan, Estimate(plan, layout), todo, time.time())
        self.screen = Screen(self.out.fileno()) if is_live(self.out, os.environ) else None
        self.said_s = 0.0
        self._drawn_s, self._drawn_size = 0.0, (0, 0)
        self._size = 0
        self._former: Any = signal.SIG_DFL
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def start(self) -> None:
        if self.state.todo:
            launches = f"{len(self.state.todo)} of {len(self.plan.launches)} launches"
            points = f"{self.state.points} load points"
            self._say(f"{self.plan.campaign}: {launches} to do, {points}")
        path = self.layout.events
        self._size = path.stat().st_size if path.exists() else 0
        if self.screen is not None:
            atexit.register(self.screen.close)  # also where nobody comes to stop us
            self._former = signal.signal(signal.SIGTSTP, self._suspend)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()
        if self.screen is not None:
            self.screen.close()
            atexit.unregister(self.screen.close)
            signal.signal(signal.SIGTSTP, self._former)

    def _suspend(self, number: int, _: object) -> None:
        """Leave the terminal whole to the shell while Ctrl-Z holds the campaign."""
        assert self.screen is not None
        with self.screen.aside():
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)  # goes on here when `fg` or `bg` says so
            signal.signal(number, self._suspend)
        self._drawn_size = 0, 0

    def _follow(self) -> None:
        if self.screen is not None:
            self._recall()
        rest = b""
        while True:
            last = self._ended.wait(_POLL_S)
            try:
                with self.layout.events.open("rb") as file:
                    file.seek(self._size)
                    data = file.read()
            except OSError:
                data = b""
            self._size += len(data)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                try:
                    said = self.state.apply(json.loads(line))
                except (ValueError, KeyError, TypeError):
                    continue
                for text in said:
                    self._say(text)
            if last:
                return
            if self.state.todo or self.plan.profiles:
                self._tick(bool(lines))

    def _recall(self) -> None:
        """Take in what was measured before this run."""
        for one in self.plan.launches:
            folder = self.layout.attempt(one.cell, one.launch, one.attempt)
            if (final := read_json_or_none(folder / "teardown.json")) is None:
                continue
            files = {p.load_id: folder / "points" / f"{p.load_id}.json" for p in one.points}
            points = {load: read_json_or_none(file) or {} for load, file in files.items()}
            self.state.recall((one.cell, one.launch), points, final["status"], final["reason"])

    def _tick(self, happened: bool) -> None:
        now_s = time.time()
        if self.screen is None:
            if now_s - self.said_s > _HEARTBEAT_S:
                self._say(self.state.phase)
            return
        size = self.screen.size()
        if happened or size != self._drawn_size or now_s - self._drawn_s >= _REDRAW_S:
            self._drawn_s, self._drawn_size = now_s, size
            self._draw(self.screen, size, now_s)

    def _draw(self, screen: Screen, size: Size, now_s: float) -> None:
        telemetry = [
            self.layout.attempt(*launch, one.attempt) / "telemetry.jsonl"
            for launch, one in self.state.running.items()
            if one.attempt is not None
        ]
        self.state.readings = read_readings(telemetry, now_s)
        screen.draw(frame(self.state, *size, now_s), size, _painted)

    def _say(self, text: str) -> None:
        self.said_s = time.time()
        print(f"{self.state.clock(self.said_s)}  {text}", file=self.out, flush=True)


def _painted(line: str) -> str:
    """Return a line in bold for what runs, and in yellow for what failed: its words say it too."""
    if line.startswith(RUNNING):
        return f"\x1b[1m{line}\x1b[0m"
    return f"\x1b[33m{line}\x1b[0m" if line.startswith(FAILED) else line
