"""The figures of a bench as Markdown, and whether our client reaches its goal."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from perf.lockstep.series import Series
from perf.lockstep.trial import Trial

TPOT_GOAL_PERCENT = 0.2
TTFT_GOAL_MS = 15.0
ITL_GOAL_MS = 10.0
CPU_GOAL = 0.5
"""Of the Python client's CPU per token."""
BASE_STREAMS = 8
"""Whose CPU is taken to be that of a client's start: it is subtracted."""


@dataclass(frozen=True)
class Column:
    """A figure of a trial, and how many digits of it are worth reading."""

    name: str
    digits: int
    value: Callable[[Trial], float | None]
    """None where it was not measured."""
    signed: bool = False


ERRORS = (
    Column("mean TPOT error, %", 2, lambda t: t.errors.tpot_percent, signed=True),
    Column("p99 ITL error, ms", 1, lambda t: t.errors.itl_p99_ms, signed=True),
    Column("mean TTFT error, ms", 1, lambda t: t.errors.ttft_ms, signed=True),
)
CONCURRENCY = Column("concurrency, achieved / asked", 3, lambda t: t.concurrency_share)
SELF_OBSERVED = (
    Column("run-queue delay, s/s", 3, lambda t: during_load(t, "waited")),
    Column("most in 0.2 s, s/s", 2, lambda t: during_load(t, "most_waited")),
    Column("CPU, s/s", 3, lambda t: during_load(t, "ran")),
    Column("switches / s", 0, lambda t: t.use.switches / t.use.load_s),
    Column("preemptions / s", 0, lambda t: t.use.preemptions / t.use.load_s),
)


def during_load(trial: Trial, name: Literal["ran", "waited", "most_waited"]) -> float | None:
    """Return what the client could tell of itself; None when its load was too short to see."""
    waits = trial.use.during_load
    if waits is None:
        return None
    return {"ran": waits.ran, "waited": waits.waited, "most_waited": waits.most_waited}[name]


def figure(values: Sequence[float], digits: int, *, signed: bool = False) -> str:
    """Return median and range."""
    if not values:
        return "not measured"
    form = f"{'+' if signed else ''}.{digits}f"
    low, middle, high = (
        f"{value + 0.0:{form}}" for value in (min(values), statistics.median(values), max(values))
    )
    return f"{middle} ({low} to {high})" if len(values) > 1 else middle


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    lines = [list(heads)]
    lines += [["---"] * len(lines[0]), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cells(series: Series, columns: Iterable[Column]) -> list[str]:
    """Return the figures of one row."""
    return [
        figure(measured(series, column), column.digits, signed=column.signed) for column in columns
    ]


def measured(series: Series, column: Column) -> list[float]:
    """Return one figure of all trials that have it."""
    values = [column.value(trial) for trial in series.trials]
    return [value for value in values if value is not None]


def counts(series: Series) -> str:
    """Return how many trials count, and how many were refused."""
    return f"{len(series.trials)}, {len(series.refused)} refused"


def cpu_us_per_token(series: Series, base: Series) -> list[float]:
    """Return CPU microseconds for each token more than those of the base load; one per trial.

    Nothing where the whole of it is no more than what the start alone varied by.
    """
    if not base.trials or not series.trials:
        return []
    starts_s = [trial.use.cpu_s for trial in base.trials]
    start_s, tokens = statistics.median(starts_s), base.trials[0].truth.tokens
    more_s = [(trial.use.cpu_s - start_s, trial.truth.tokens - tokens) for trial in series.trials]
    if statistics.median(cpu_s for cpu_s, _ in more_s) <= max(starts_s) - min(starts_s):
        return []
    return [1e6 * cpu_s / count for cpu_s, count in more_s]


def cpu_figure(series: Series, base: Series) -> str:
    """Return the CPU per token, or why there is none."""
    values = cpu_us_per_token(series, base)
    if series.trials and base.trials and not values:
        return "less than its start varies"
    return figure(values, 1)


def accuracy_table(found: Mapping[tuple[str, int], Series]) -> str:
    """Return the table of clients side by side: by streams, then by client."""
    columns = (*ERRORS, CONCURRENCY)
    rows = [
        [
            client,
            f"{streams:,}",
            counts(series),
            *cells(series, columns),
            cpu_figure(series, found[client, BASE_STREAMS]),
        ]
        for (client, streams), series in sorted(found.items(), key=lambda i: (i[0][1], i[0][0]))
        if streams != BASE_STREAMS
    ]
    heads = ["client", "streams", "rounds", *(c.name for c in columns), "CPU µs / token"]
    return table(heads, rows)


def sharing_table(found: Mapping[tuple[int, float], Series]) -> str:
    """Return the table of a client that shares its core: by streams, then by the neighbour."""
    columns = (*SELF_OBSERVED, *ERRORS)
    rows = [
        [f"{streams:,}", f"{share:.0%}", counts(series), *cells(series, columns)]
        for (streams, share), series in sorted(found.items())
    ]
    return table(["streams", "neighbour", "rounds", *(c.name for c in columns)], rows)


def verdicts(
    found: Mapping[tuple[str, int], Series], ours: str, other: str, streams: int
) -> list[tuple[bool, str]]:
    """Return each goal as reached or not, with the medians that say so."""
    series = found[ours, streams]
    limits = (TPOT_GOAL_PERCENT, ITL_GOAL_MS, TTFT_GOAL_MS)
    said = []
    for column, limit in zip(ERRORS, limits, strict=True):
        if not series.trials:
            said.append((False, f"{column.name}: not measured"))
            continue
        value = statistics.median(measured(series, column))
        said.append((abs(value) <= limit, f"{column.name}: {value:+.2f}, within {limit:g}"))
    mine, theirs = (
        cpu_us_per_token(found[client, streams], found[client, BASE_STREAMS])
        for client in (ours, other)
    )
    if mine and theirs:
        share = statistics.median(mine) / statistics.median(theirs)
        said.append((share <= CPU_GOAL, f"CPU per token: {share:.2f} of {other}'s, {CPU_GOAL:g}"))
    else:
        said.append((False, "CPU per token: not measured"))
    return said
