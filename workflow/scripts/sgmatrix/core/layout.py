"""Where the files of a campaign lie. The one place that knows the names of DESIGN section 8."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROBE = "probe"
"""Stands for a launch that is not timed, in which experts are counted."""
NODE_PROBE = "node-probe"
"""Stands for cell and launch where the node itself is probed."""
PROFILE = "profile"
"""Stands for a launch that is not timed, in which the engine's own profiler looks on."""
UNTIMED = (PROBE, PROFILE)
NOISE = "-noise"
"""Ends the name of a baseline's second launch in a round, as in `1-noise`."""
EXTRA = "-extra"
"""Stands between the number of a launch and that of its extra launch, as in `1-extra1`."""


def base_launch(launch: str) -> str:
    """Return the launch that an extra launch completes; a plain launch is its own."""
    return launch.partition(EXTRA)[0]


def launch_number(launch: str) -> int:
    """Return the number of a launch, which is its round."""
    return int(launch.partition("-")[0])


def launch_order(launch: str) -> tuple[int, bool, int]:
    """Return a sort key: launches by number, then the noise, each before its extra launches."""
    base, _, extra = launch.partition(EXTRA)
    return launch_number(base), base.endswith(NOISE), int(extra or 0)


def _folder_name(launch: str) -> str:
    return launch if launch in UNTIMED else f"launch-{launch}"


def _is_number(name: str) -> bool:
    """Tell whether a folder's name is that of an attempt: 1, 2, …, and not 01 or 1.bak."""
    return name.isascii() and name.isdecimal() and not name.startswith("0")


@dataclass(frozen=True)
class Layout:
    """Paths below `<results>/<campaign>`."""

    root: Path

    @classmethod
    def of(cls, published: Path) -> Layout:
        """Return the layout that a published file of a cell belongs to."""
        return cls(next(one for one in published.parents if one.name == "cells").parent)

    @property
    def plan(self) -> Path:
        return self.root / "plan.json"

    @property
    def node_probe(self) -> Path:
        """What was measured of the node before the first launch."""
        return self.root / "node-probe.json"

    @property
    def home(self) -> Path:
        """Which records the tables are of, where they were measured on another machine."""
        return self.root / "home.json"

    @property
    def events(self) -> Path:
        """One JSON line per step that began or ended: what the progress display reads."""
        return self.root / "logs" / "events.jsonl"

    @property
    def stopping(self) -> Path:
        """Exists once the running invocation is to begin no further launch; says why."""
        return self.root / "logs" / "stopping"

    @property
    def datasets(self) -> Path:
        return self.root / "datasets"

    @property
    def left_out(self) -> Path:
        """What of the history is in no table, and why."""
        return self.root / "left-out.json"

    def made_of_records(self) -> list[Path]:
        """Return the files that are made of the records of all launches, and can be made again."""
        names = ("cells", "points", "requests", "telemetry", "comparisons", "experts", "ceilings")
        tables = [self.datasets / f"{name}.parquet" for name in names]
        return [
            *tables,
            self.left_out,
            self.root / "report" / "index.html",
            self.root / "tracking.json",
        ]

    def cell(self, cell: str) -> Path:
        return self.root / "cells" / cell

    def launch(self, cell: str, launch: str) -> Path:
        """The published view of a launch: what the current attempt of it says."""
        return self.cell(cell) / _folder_name(launch)

    def attempts(self, cell: str, launch: str) -> Path:
        return self.root / "history" / cell / _folder_name(launch)

    def attempt(self, cell: str, launch: str, attempt: int) -> Path:
        """The append-only record of one attempt."""
        return self.attempts(cell, launch) / str(attempt)

    def attempt_numbers(self, cell: str, launch: str) -> list[int]:
        folder = self.attempts(cell, launch)
        if not folder.is_dir():
            return []
        return sorted(int(entry.name) for entry in folder.iterdir() if _is_number(entry.name))

    def all_attempts(self) -> Iterator[tuple[str, str, int, Path]]:
        """Yield (cell, launch, attempt, folder) of all timed launches, in a fixed order."""
        history = self.root / "history"
        for folder in sorted(history.glob("*/launch-*")):
            cell, launch = folder.parent.name, folder.name.removeprefix("launch-")
            for number in self.attempt_numbers(cell, launch):
                yield cell, launch, number, folder / str(number)

    def strays(self) -> list[Path]:
        """Return the folders that lie among attempts, hold one, and are not named as one."""
        specs = (self.root / "history").glob("*/launch-*/*/spec.json")
        return sorted(spec.parent for spec in specs if not _is_number(spec.parent.name))
