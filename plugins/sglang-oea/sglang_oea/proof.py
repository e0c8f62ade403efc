"""A rank's answer to the question whether it runs OEA: a nonce in, a record out.

The asker writes a nonce into `<status dir>/ask`; each rank writes `rank-<pid>.json` with it.
An old file therefore proves nothing, and a rank that hangs does not answer.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sglang_oea.capture import CaptureGuard

ASK = "ask"
POLL_S = 0.2


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write JSON so that a reader sees the old file or the new one, never half of it."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(record, indent=1) + "\n")
    part.replace(path)


class Responder:
    """Answers the asker from a daemon thread. It touches the device only when it is asked.

    Args:
        folder: the status dir.
        facts: returns the record; it may read the device.
        guard: keeps it from reading during a capture.
    """

    def __init__(
        self, folder: Path, facts: Callable[[], dict[str, Any]], guard: CaptureGuard
    ) -> None:
        self.folder = folder
        self.facts = facts
        self.guard = guard
        self.answered: str | None = None
        self.stopped = threading.Event()
        self.file = folder / f"rank-{os.getpid()}.json"

    def start(self) -> None:
        """Make the folder and begin to answer."""
        self.folder.mkdir(parents=True, exist_ok=True)
        threading.Thread(target=self._run, name="sglang-oea-proof", daemon=True).start()

    def _run(self) -> None:
        while not self.stopped.wait(POLL_S):
            try:
                self.answer()
            except Exception as problem:  # noqa: BLE001 - a full disk must not end the thread
                print(f"sglang-oea: no proof written: {problem!r}", file=sys.stderr, flush=True)  # noqa: T201

    def answer(self) -> bool:
        """Answer a nonce that is new; return whether a record was written."""
        try:
            nonce = (self.folder / ASK).read_text().strip()
        except FileNotFoundError:
            return False
        if not nonce or nonce == self.answered:
            return False
        with self.guard.outside_capture() as free:
            if not free:
                return False  # asked again at the next turn
            facts = self.facts()
        who = {"answers": nonce, "role": "scheduler", "pid": os.getpid()}
        write_record(self.file, {**who, **facts})
        self.answered = nonce
        return True
