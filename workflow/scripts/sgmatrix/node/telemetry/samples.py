"""Telemetry as it was written, read back: samples, facts, and what could not be measured.

The file may still be growing and may have holes: a half-written line is left out, wherever it
is, and a missing file has no samples. What is missing is seen in `window.coverage`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_LATEST_S = 1e11
"""Unix time beyond which a moment is damage."""
_TAIL_BYTES = 32 * 1024
"""Holds a few lines of a node with eight GPUs."""


@dataclass(frozen=True)
class Sample:
    """One tick. What was not measured is absent from its group; units are in the names."""

    t_s: float
    """Unix time."""
    interval_s: float | None = None
    """Over which its rates (`_share`, `_cores`) are; they end at `t_s`."""
    host: Mapping[str, float] = field(default_factory=dict)
    engine: Mapping[str, float] = field(default_factory=dict)
    harness: Mapping[str, float] = field(default_factory=dict)
    gpus: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    took_ms: float | None = None
    cpu_ms: float | None = None
    skipped: int = 0
    """Ticks left out up to here."""
    lost: int = 0
    """Lines that could not be written up to here."""


def read_samples(
    path: Path, start_s: float = -math.inf, end_s: float = math.inf
) -> tuple[Sample, ...]:
    """Return the samples of a window by time, and one before and one after it.

    The two neighbours are what values at the window's borders are interpolated from; the
    functions of `window` leave them out where they count samples.

    Args:
        path: the file of a sampler.
        start_s: unix time.
        end_s: unix time.
    """
    before: Sample | None = None
    after: Sample | None = None
    within: list[Sample] = []
    for record in _records(path):
        sample = _sample(record)
        if sample is None:
            continue
        if sample.t_s < start_s:
            before = sample if before is None or sample.t_s >= before.t_s else before
        elif sample.t_s > end_s:
            after = sample if after is None or sample.t_s < after.t_s else after
        else:
            within.append(sample)
    # the wall clock may have been set back between two of them
    within.sort(key=lambda sample: sample.t_s)
    return (*filter(None, [before]), *within, *filter(None, [after]))


def last_sample(path: Path) -> Sample | None:
    """Return the newest sample of a file that grows, from its end alone; None: there is none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return None
    found = (_sample(one) for one in reversed(list(_parsed(lines))))
    return next((one for one in found if one is not None), None)


def read_facts(path: Path) -> dict[str, Any]:
    """Return the facts of the machine and of its GPUs; empty when none were written."""
    facts: dict[str, Any] = {}
    for record in _records(path):
        if isinstance(said := record.get("facts"), dict):
            facts |= said
    return facts


def read_errors(path: Path) -> list[dict[str, str]]:
    """Return what could not be measured, in the order in which it was found."""
    return [record["error"] for record in _records(path) if isinstance(record.get("error"), dict)]


def _records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return
    yield from _parsed(lines)


def _parsed(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _numbers(value: Any) -> dict[str, float]:
    """Return what is a number in a group; a damaged line says nothing else."""
    return {
        name: number
        for name, value_or_none in _mapping(value).items()
        if (number := _number(value_or_none)) is not None
    }


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and math.isfinite(value) else None


def _gpu(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a GPU's values may be: numbers, reasons and process ids."""
    kinds: dict[str, type] = {"throttle_reasons": str, "foreign_pids": int, "unseen_pids": int}
    lists = {
        name: [one for one in values[name] if isinstance(one, kind)]
        for name, kind in kinds.items()
        if isinstance(values.get(name), list)
    }
    return {**_numbers(values), **lists}


def _sample(record: Mapping[str, Any]) -> Sample | None:
    moment = record.get("t")
    if not isinstance(moment, int | float) or not 0 <= moment < _LATEST_S:
        return None
    gpus = _mapping(record.get("gpus"))
    return Sample(
        t_s=moment,
        interval_s=_number(record.get("interval_s")),
        host=_numbers(record.get("host")),
        engine=_numbers(record.get("engine")),
        harness=_numbers(record.get("harness")),
        gpus={gpu: _gpu(values) for gpu, values in gpus.items() if isinstance(values, dict)},
        took_ms=_number(record.get("took_ms")),
        cpu_ms=_number(record.get("cpu_ms")),
        skipped=int(_number(record.get("skipped")) or 0),
        lost=int(_number(record.get("lost")) or 0),
    )
