"""Switch SGLang's profiler on in the middle of a wave, and see that its traces are whole.

Source    sglang 0.5.23, srt/managers/scheduler_components/profiler_manager.py: with `num_steps` the
          profiler ends by itself, and each rank writes `<profile_id>-TP-<n>….trace.json.gz` while
          its scheduler answers nothing else.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sgmatrix.node.server import Server
from sgmatrix.node.wire import get_json, request

PROFILE_ID = "profile"
_POLL_S = 0.02
_ASK_S = 120.0
_WRITE_S = 600.0
"""Writing a trace of many ranks takes minutes."""
_INTO_THE_WAVE = 0.25
"""Share of a wave to let pass once all of its requests are decoded."""


class Capture(threading.Thread):
    """Waits beside a wave until it is full, and starts the profiler then.

    Args:
        server: the server that the wave goes to.
        folder: where the ranks are to write their traces.
        planned: the profile, of `plan.json`.
        device: the cell's device; the CPU engine has no other activity.
        wave_s: how long such a wave was seen to take.
    """

    def __init__(
        self,
        server: Server,
        folder: Path,
        planned: Mapping[str, Any],
        device: str,
        wave_s: float,
    ) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.folder = folder
        self.planned = planned
        self.device = device
        self.wave_s = wave_s
        self.running: int | None = None
        """Requests that were decoded when it started; None: it has not."""
        self.problem = "the wave was over before all of its requests were decoded at once"
        self.over = threading.Event()

    def run(self) -> None:
        try:
            running = self._await_full()
            if running is not None:
                self._start_profiler()
                self.running = running
        except OSError as error:
            self.problem = str(error)[:500]

    def _await_full(self) -> int | None:
        """Return how many requests run once the wave is full; None where it ended before.

        One that never is, because the memory holds fewer, counts as full in its middle.
        """
        seen_s: float | None = None
        while not self.over.wait(_POLL_S):
            running = running_requests(self.server)
            if running and seen_s is None:
                seen_s = time.monotonic()
            late = seen_s is not None and time.monotonic() - seen_s > self.wave_s / 2
            if running >= self.planned["running"] or (running and late):
                return None if self.over.wait(self.wave_s * _INTO_THE_WAVE) else running
        return None

    def _start_profiler(self) -> None:
        body = {
            "output_dir": str(self.folder),
            "num_steps": self.planned["steps"],
            "activities": ["CPU"] if self.device == "cpu" else ["CPU", "GPU"],
            "with_stack": False,
            "record_shapes": False,
            "profile_id": PROFILE_ID,
        }
        _tell(self.server, "/start_profile", body)

    def finish(self) -> list[Path]:
        """Return the traces, when the wave is over and they are whole.

        Raises:
            OSError: when the profiler was not started, or does not end.
        """
        self.over.set()
        self.join()
        if self.running is None:
            raise OSError(self.problem)
        get_json(self.server.port, "/v1/loads", timeout_s=_WRITE_S)  # not while traces are written
        if not traces_in(self.folder):  # fewer steps than asked for: it still looks on
            _tell(self.server, "/stop_profile", {})
        return traces_in(self.folder)


def running_requests(server: Server) -> int:
    """Return how many requests a server decodes, over its data-parallel ranks."""
    loads = get_json(server.port, "/v1/loads", timeout_s=_ASK_S)["loads"]
    return sum(int(one["num_running_reqs"]) for one in loads)


def traces_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.trace.json.gz"))


def _tell(server: Server, path: str, body: dict[str, Any]) -> None:
    status, answer = request(server.port, "POST", path, body, timeout_s=_WRITE_S)
    if status != 200:
        raise OSError(f"{path} answered {status}: {answer[:200].decode(errors='replace')}")
