"""Profiler of the stand-in: a trace whose times are known by construction.

A step of a trace takes STEP_US: 600 us of `aten::linear` with an `aten::mm` inside, 200 us of
attention, 200 us in which nothing runs. Each rank writes the same.

Source    sglang 0.5.23, srt/managers/scheduler_components/profiler_manager.py: the profiler starts
          with the request, ends after `num_steps` steps, and names its files by rank.
Differs   the real one ends a step later, with the beginning of that step in the trace.
"""

import gzip
import json
import os
from typing import Any

STEP_US = 1000.0


class Profiler:
    """Looks on while it is told to."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.asked: dict[str, Any] | None = None
        self.batches: list[int] = []

    def start(self, asked: dict[str, Any]) -> bool:
        if self.asked is not None:
            return False
        self.asked, self.batches = asked, []
        return True

    def step(self, tokens: int) -> None:
        if self.asked is None or not tokens:
            return
        self.batches.append(tokens)
        if len(self.batches) == self.asked["num_steps"]:
            self.stop()

    def stop(self) -> bool:
        if self.asked is None:
            return False
        os.makedirs(self.asked["output_dir"], exist_ok=True)  # noqa: PTH103 - pathlib takes 6 ms
        for rank in range(self.ranks):
            name = f"{self.asked['output_dir']}/{self.asked['profile_id']}-TP-{rank}.trace.json.gz"
            with gzip.open(name, "wt", encoding="utf-8") as file:
                json.dump({"schemaVersion": 1, "traceEvents": self.events()}, file)
        self.asked = None
        return True

    def events(self) -> list[dict[str, Any]]:
        found = []
        for number, tokens in enumerate(self.batches):
            begin = number * STEP_US
            found += [
                event("user_annotation", f"step[DECODE bs={tokens}]", begin, 900.0),
                event("cpu_op", "aten::linear", begin, 600.0),
                event("cpu_op", "aten::mm", begin + 50, 500.0),
                event("cpu_op", "aten::scaled_dot_product_attention", begin + 600, 200.0),
            ]
        return found


def event(kind: str, name: str, begin: float, took: float) -> dict[str, Any]:
    return {"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": 1, "ts": begin, "dur": took}
