"""How long launches will take: measured ones where there are any, else stated assumptions."""

from __future__ import annotations

from collections.abc import Iterable

from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import Layout
from sgmatrix.plan.plan import Plan

ASSUMED_POINT_S, ASSUMED_WARMUP_S, ASSUMED_STOP_S = 4.0, 6.0, 6.0

LaunchName = tuple[str, str]
"""Cell and launch."""


def clock(seconds: float) -> str:
    """Return seconds as m:ss, or h:mm:ss."""
    minutes, rest = divmod(int(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class Estimate:
    """Expected times of the launches of a plan.

    A launch is assumed to take the start that its engine declares plus fixed times; what
    launches really took, in the history and then in this run, scales the assumption.
    """

    def __init__(self, plan: Plan, layout: Layout) -> None:
        self.assumed = {
            (one.cell, one.launch): plan.cells[one.cell].expected_start_s
            + ASSUMED_WARMUP_S
            + ASSUMED_POINT_S * len(one.points)
            + ASSUMED_STOP_S
            for one in plan.launches
        }
        self.took: dict[LaunchName, float] = {}
        for one in plan.launches:
            for number in reversed(layout.attempt_numbers(one.cell, one.launch)):
                folder = layout.attempt(one.cell, one.launch, number)
                final = read_json_or_none(folder / "teardown.json")
                if final is not None and final["status"] == "ok":
                    times = final["closed"]["times"]
                    self.took[one.cell, one.launch] = times["closed"] - times["started"]
                    break

    def done(self, launch: LaunchName, seconds: float) -> None:
        """Learn what a launch took."""
        self.took[launch] = seconds

    def remaining_s(self, left: Iterable[LaunchName]) -> float:
        """Return the expected time of the launches that are left, one after the other."""
        assumed = sum(self.assumed[launch] for launch in self.took)
        scale = sum(self.took.values()) / assumed if assumed else 1.0
        return scale * sum(self.assumed[launch] for launch in left)
