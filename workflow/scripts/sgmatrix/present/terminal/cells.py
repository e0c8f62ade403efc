"""The cells of a campaign while it runs: what each has measured, and how it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Literal

from sgmatrix.core.flags import is_barred

Status = Literal["not run", "running", "ok", "failed"]


@dataclass(frozen=True)
class Measured:
    """One point."""

    output_tok_s: float
    tpot_ms: float | None
    validity: str
    barred: bool
    """From comparisons of throughput."""


@dataclass(frozen=True)
class Best:
    """The load point of a cell with the highest throughput, as the mean over its launches."""

    at: str
    """What is offered: `8`, or `2.5/s`."""
    output_tok_s: float
    tpot_ms: float | None
    flags: str
    """Empty: none."""


@dataclass
class CellState:
    """One cell."""

    cell: str
    axes: tuple[str, ...]
    points: int
    """Planned, over all launches."""
    launches: int
    done: dict[str, set[str]] = field(default_factory=dict)
    """Launch to the loads that are over, whatever came of them."""
    ended: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    reasons: dict[str, str] = field(default_factory=dict)
    """Launch to the reason class of its failure."""
    measured: dict[str, dict[str, Measured]] = field(default_factory=dict)
    """Load to launch to point."""

    @property
    def points_done(self) -> int:
        return sum(len(loads) for loads in self.done.values())

    @property
    def status(self) -> Status:
        if self.running:
            return "running"
        if self.reasons:
            return "failed"
        return "ok" if len(self.ended) >= self.launches else "not run"

    @property
    def reason(self) -> str:
        return " ".join(sorted(set(self.reasons.values())))

    def begin(self, launch: str) -> None:
        """Forget what an earlier attempt of a launch said."""
        self.running.add(launch)
        self.ended.discard(launch)
        self.reasons.pop(launch, None)
        self.done.pop(launch, None)
        for launches in self.measured.values():
            launches.pop(launch, None)

    def add(self, launch: str, load: str, point: Mapping[str, Any]) -> None:
        """Take in a point that is over."""
        self.done.setdefault(launch, set()).add(load)
        rate = point.get("output_tok_s")
        if point.get("status") != "ok" or not isinstance(rate, int | float):
            return
        row = {"validity": point.get("validity"), **dict.fromkeys(self.axes, "")}
        tpot = point.get("tpot_ms_mean")
        self.measured.setdefault(load, {})[launch] = Measured(
            rate,
            tpot if isinstance(tpot, int | float) else None,
            str(row["validity"] or ""),
            is_barred(row, "throughput"),
        )

    def end(self, launch: str, loads: set[str], status: str, reason: str | None) -> None:
        """Take in the end of a launch: nothing of it is left to do."""
        self.running.discard(launch)
        self.ended.add(launch)
        self.done[launch] = set(loads)
        if status == "failed":
            self.reasons[launch] = reason or "failed"

    @property
    def best(self) -> Best | None:
        """Return its best load point; one that a flag bars only where there is no other."""
        loads = {load: list(points.values()) for load, points in self.measured.items() if points}
        kept = {
            load: [one for one in points if not one.barred] or points
            for load, points in loads.items()
        }
        if not kept:
            return None

        def rank(load: str) -> tuple[bool, float]:
            return not kept[load][0].barred, fmean(one.output_tok_s for one in kept[load])

        load = max(kept, key=rank)
        tpots = [one.tpot_ms for one in kept[load] if one.tpot_ms is not None]
        flags = {
            flag
            for one in kept[load]
            for flag in one.validity.split(",")
            if flag not in ("valid", "")
        }
        return Best(
            offered(load), rank(load)[1], fmean(tpots) if tpots else None, " ".join(sorted(flags))
        )


def offered(load: str) -> str:
    """Return the load of a load id in short: `8` of `c0008-i64-o64-random-ids`, or `2.5/s`."""
    head = load.partition("-")[0]
    number = head[1:].lstrip("0") or "0"
    if head.startswith("r"):
        return f"{'0' if number.startswith('.') else ''}{number}/s"
    return number
