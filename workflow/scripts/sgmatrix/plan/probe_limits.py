"""Probes that cannot count what they are asked for, told before any launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgmatrix.core.errors import Refusal
from sgmatrix.plan.cells import Cell
from sgmatrix.plan.loads import LoadPoint
from sgmatrix.plan.model import ModelFacts

_OFF = "or probe.experts: off"


def refuse_impossible(
    probes: Mapping[str, Sequence[LoadPoint]],
    cells: Mapping[str, Cell],
    model: ModelFacts,
    prompts: Mapping[str, Any],
) -> None:
    """Refuse probes whose steps would never be as full, or as many, as they are to be.

    Args:
        probes: cell id to the points of its probe.
        cells: by id.
        model: the model's facts.
        prompts: what makes the prompts of the load.

    Raises:
        Refusal: `config_rejected`, naming each of them.
    """
    problems = [
        f"probe of {name}: {why}"
        for name, points in probes.items()
        for why in _problems(cells[name].flags, points, model, prompts)
    ]
    if problems:
        raise Refusal("config_rejected", problems)


def _problems(
    flags: Mapping[str, Any],
    points: Sequence[LoadPoint],
    model: ModelFacts,
    prompts: Mapping[str, Any],
) -> Iterator[str]:
    most = max(point.concurrency or 0 for point in points)
    if (replicas := flags.get("dp_size") or 1) > 1:
        yield (
            f"dp_size = {replicas}: each replica decodes, and counts, a part of the batch; fix: "
            "probe.experts: off"
        )
    room = room_of(flags)
    if room is not None and most > room:
        yield (
            f"probe.batches: {most} is over max_running_requests = {room}, so that no step has so "
            f"many tokens; fix: at most {room} in probe.batches, {_OFF}"
        )
    count = prompts.get("count")
    if count is not None and most > count:
        yield (
            f"load.path: {prompts['path']} holds {count} prompts, a batch of {most} needs {most}; "
            f"fix: more prompts, smaller probe.batches, {_OFF}"
        )
    asked = flags.get("context_length")
    limit = asked if isinstance(asked, int) else model.context_length
    longest = max(point.input_len + point.output_len for point in points)
    if limit is not None and longest > limit:
        yield (
            f"load.input_len + probe.steps = {longest} is over the context length {limit}; fix: "
            f"lower probe.steps, {_OFF}"
        )


def room_of(flags: Mapping[str, Any]) -> int | None:
    """Return how many requests a server decodes at once at the most; None: it decides itself."""
    room = flags.get("max_running_requests")
    return room if isinstance(room, int) else None
