"""Where the time of the launches went: what was load, and what it took to get there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sgmatrix.dataset.history import Attempt
from sgmatrix.dataset.spans import phases_s
from sgmatrix.present.estimate import clock

NAMES = {
    "start_s": "start",
    "warmup_s": "warm-up",
    "bench_s": "load",
    "teardown_s": "stop",
}


@dataclass(frozen=True)
class CellPhases:
    """Mean seconds per phase of a cell's launches; a phase that none of them had is None."""

    cell: str
    launches: int
    seconds: dict[str, float | None]
    scale_s: float
    """The longest total of all cells."""

    @property
    def total_s(self) -> float:
        return sum(span or 0.0 for span in self.seconds.values())

    @property
    def load_share(self) -> float | None:
        load = self.seconds["bench_s"]
        return load / self.total_s if load is not None and self.total_s else None

    def parts(self) -> list[tuple[str, float]]:
        """Return the width of each phase in a bar, in percent of the longest cell."""
        return [
            (name, round(100 * (span or 0.0) / self.scale_s, 2))
            for name, span in self.seconds.items()
            if self.scale_s
        ]


@dataclass(frozen=True)
class Phases:
    """Of all cells."""

    cells: tuple[CellPhases, ...]
    text: str


def phases(attempts: Sequence[Attempt], order: Sequence[str]) -> Phases | None:
    """Return the phases of the current launches; None where none is complete.

    Args:
        attempts: of the campaign.
        order: of the cells; others are left out.
    """
    found: dict[str, list[dict[str, float]]] = {}
    for attempt in attempts:
        if attempt.current and (spans := phases_s(attempt)):
            found.setdefault(attempt.spec["cell"]["id"], []).append(spans)
    means = {cell: _means(found[cell]) for cell in order if cell in found}
    if not means:
        return None
    scale_s = max(sum(span or 0.0 for span in one.values()) for one in means.values())
    cells = tuple(CellPhases(cell, len(found[cell]), one, scale_s) for cell, one in means.items())
    sums = {
        name: sum(spans.get(name, 0.0) for cell in means for spans in found[cell]) for name in NAMES
    }
    whole = sum(sums.values())
    shares = ", ".join(f"{NAMES[name]} {100 * span / whole:.0f} %" for name, span in sums.items())
    return Phases(cells, f"{clock(whole)} of launches: {shares}." if whole else "")


def _means(launches: Sequence[dict[str, float]]) -> dict[str, float | None]:
    means: dict[str, float | None] = {}
    for name in NAMES:
        spans = [one[name] for one in launches if name in one]
        means[name] = sum(spans) / len(spans) if spans else None
    return means
