"""Does a repeated launch say the same as before? Old value, new value, difference, known noise.

The noise of a cell is what its earlier server starts tell: a new value lies within it when it
falls into the 95 % prediction interval of theirs, mean ± t(0.975, n - 1) s sqrt(1 + 1 / n), with s
their sample standard deviation. With one earlier start it is unknown, and then no difference is
called large or small; with two it is wide, as it should be.

Source    prediction interval of a normal sample: any textbook; t quantiles: tables of
          Student's distribution.
Not here  any I/O.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sgmatrix.core.flags import is_barred

METRICS = (
    "output_tok_s",
    "ttft_ms_mean",
    "ttft_ms_p99",
    "tpot_ms_mean",
    "tpot_ms_p99",
    "e2e_ms_p99",
)

# Two-sided 95 % quantile of Student's t, by degrees of freedom from 1.
_T975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
_T975_LARGE = 2.228
"""From 10 degrees of freedom on: a little wide (the limit is 1.960), never too narrow."""


@dataclass(frozen=True)
class Agreement:
    """One metric of one point, before and after."""

    load_id: str
    metric: str
    old: float | None
    """Of the last attempt before."""
    new: float | None
    difference: float | None
    """(new - old) / old; None where either is missing or old is 0."""
    starts: int
    """Earlier server starts that the noise is taken from."""
    noise: float | None
    """Half width of the prediction interval over its mean; None: unknown."""
    verdict: str
    """`within_noise`, `beyond_noise`, `unknown`, or `not_measured` where a value is missing."""

    def record(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Repeated:
    """A launch that was measured again, and how it agrees with its last attempt before."""

    cell: str
    launch: str
    old: int
    """Attempt before."""
    new: int
    points: tuple[Agreement, ...]


def repeated_launches(rows: Iterable[Mapping[str, Any]]) -> list[Repeated]:
    """Return every launch that has an earlier attempt of the same server, compared with it.

    Args:
        rows: rows of `points` of a whole campaign, all attempts.
    """
    launches: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    cells: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["status"] == "ok":
            launches.setdefault((row["cell"], row["launch"]), []).append(row)
            cells.setdefault(row["cell"], []).append(row)
    found = []
    for (cell, launch), mine in launches.items():
        new = {row["load_id"]: row for row in mine if row["current"]}
        if not new:
            continue
        current = next(iter(new.values()))
        before = [
            row for row in mine if not row["current"] and row["cell_key"] == current["cell_key"]
        ]
        if not before:
            continue
        last = max(row["attempt"] for row in before)
        old = {row["load_id"]: row for row in before if row["attempt"] == last}
        # every earlier start of the same server tells of its noise, whichever launch it was
        compared = ((launch, last), (launch, current["attempt"]))
        others = [
            row
            for row in cells[cell]
            if row["cell_key"] == current["cell_key"]
            and (row["launch"], row["attempt"]) not in compared
            and row["harness"] == current["harness"]
            and _as_good(row, new.get(row["load_id"], {}))
        ]
        points = tuple(agreements(old, new, others))
        found.append(Repeated(cell, launch, last, current["attempt"], points))
    return found


def _as_good(row: Mapping[str, Any], current: Mapping[str, Any]) -> bool:
    """Tell whether a start says something of the noise: no flag bars it, or the same flags do."""
    barred = is_barred(row, "latency") or is_barred(row, "throughput")
    return not barred or row["validity"] == current.get("validity")


def relative(old: float | None, new: float | None) -> float | None:
    """Return (new - old) / old, None where that does not exist."""
    return None if old is None or new is None or old == 0 else (new - old) / old


def noise_of(values: Sequence[float]) -> float | None:
    """Return the half width of the 95 % prediction interval over the mean of the values.

    None below two values, or where their mean is 0.
    """
    n = len(values)
    if n < 2 or not (mean := statistics.fmean(values)):
        return None
    quantile = _T975[n - 2] if n - 2 < len(_T975) else _T975_LARGE
    return quantile * statistics.stdev(values) * math.sqrt(1 + 1 / n) / abs(mean)


def agreements(
    old: Mapping[str, Mapping[str, Any]],
    new: Mapping[str, Mapping[str, Any]],
    others: Iterable[Mapping[str, Any]] = (),
) -> list[Agreement]:
    """Compare two attempts of one launch.

    Args:
        old: load id -> row of `points`, of the earlier attempt.
        new: the same of the repeated one.
        others: rows of other earlier starts of the same server (equal cell key).
    """
    rows = list(others)
    return [
        _compare(old.get(load_id, {}), new[load_id], rows, load_id, metric)
        for load_id in new
        for metric in METRICS
    ]


def _compare(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    others: Sequence[Mapping[str, Any]],
    load_id: str,
    metric: str,
) -> Agreement:
    before, after = old.get(metric), new.get(metric)
    found = [before, *(row.get(metric) for row in others if row["load_id"] == load_id)]
    values = [value for value in found if value is not None]
    noise = noise_of(values)
    if before is None or after is None:
        verdict = "not_measured"
    elif noise is None:
        verdict = "unknown"
    else:
        mean = statistics.fmean(values)
        within = abs(after - mean) <= noise * abs(mean)
        verdict = "within_noise" if within else "beyond_noise"
    difference = relative(before, after)
    return Agreement(load_id, metric, before, after, difference, len(values), noise, verdict)
