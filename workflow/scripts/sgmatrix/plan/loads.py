"""The load points of a launch: what is offered, how much of it, with which seed and key."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.hashing import digest
from sgmatrix.core.version import HARNESS_VERSION
from sgmatrix.plan.cells import Cell
from sgmatrix.plan.load_parts import Load


@dataclass(frozen=True)
class LoadPoint:
    """What one benchmark job offers to one launch.

    Exactly one of `concurrency` (closed loop) and `request_rate` (open loop) is given.
    """

    load_id: str
    dataset: str
    concurrency: int | None
    """Requests in flight."""
    request_rate: float | None
    """Requests per second."""
    max_concurrency: int | None
    """Of the open loop: requests in flight at the most."""
    burstiness: float
    input_len: int
    output_len: int
    requests: int | None
    """None: as many as `duration_s` takes, known once the server is warm."""
    duration_s: float | None
    min_requests: int
    prompts: dict[str, Any]
    """What else makes the prompts: prefix and groups, or file and hash."""
    slo: dict[str, float]
    seed: int
    key: str


def derive_seed(campaign_seed: int, launch: str, load_id: str) -> int:
    """Return the seed of one point: the same for all cells, so that arms see the same prompts."""
    text = f"{campaign_seed}/{launch}/{load_id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def load_points(
    load: Load,
    cell: Cell,
    launch: str,
    *,
    client: Mapping[str, Any],
    warmup: Mapping[str, Any],
    prompts: Mapping[str, Any],
) -> tuple[LoadPoint, ...]:
    """Return the points of a launch: closed loop from the lowest up, then open loop."""
    closed = [
        _point(one, cell, launch, c, None, client, warmup, prompts)
        for one in load.workloads()
        for c in one.concurrency
    ]
    opened = [
        _point(load, cell, launch, None, r, client, warmup, prompts) for r in load.request_rate
    ]
    return (*closed, *opened)


def load_ids(load: Load) -> dict[str, tuple[int | None, float | None]]:
    """Return the load ids of a load in order, each with its concurrency or its request rate."""
    closed = {
        _load_id(one, c, None): (c, None) for one in load.workloads() for c in one.concurrency
    }
    return {**closed, **{_load_id(load, None, r): (None, r) for r in load.request_rate}}


def _load_id(load: Load, concurrency: int | None, rate: float | None) -> str:
    how = f"c{concurrency:04d}" if rate is None else f"r{rate:.10g}"
    return f"{how}-i{load.input_len}-o{load.output_len}-{load.dataset}"


def _point(
    load: Load,
    cell: Cell,
    launch: str,
    concurrency: int | None,
    rate: float | None,
    client: Mapping[str, Any],
    warmup: Mapping[str, Any],
    prompts: Mapping[str, Any],
) -> LoadPoint:
    load_id = _load_id(load, concurrency, rate)
    requests = _request_count(load, concurrency, rate)
    seed = derive_seed(load.seed, launch, load_id)
    duration_s = load.requests.duration_s
    opened = rate is not None
    offered = {
        "load": load_id,
        "requests": requests if requests is not None else f"{duration_s:g} s",
        "seed": seed,
        "client": client["id"],
        "warmup": dict(warmup),
        # the same prompts elsewhere are the same load
        "prompts": {name: value for name, value in prompts.items() if name != "path"},
        "arrivals": [load.max_concurrency, load.burstiness] if opened else None,
    }
    return LoadPoint(
        load_id=load_id,
        dataset=load.dataset,
        concurrency=concurrency,
        request_rate=rate,
        max_concurrency=load.max_concurrency if opened else None,
        burstiness=load.burstiness if opened else 1.0,
        input_len=load.input_len,
        output_len=load.output_len,
        requests=requests,
        duration_s=duration_s,
        min_requests=max(load.requests.min, concurrency or 1),
        prompts=dict(prompts),
        slo=load.slo.model_dump(exclude_none=True) if load.slo else {},
        seed=seed,
        key=digest({"cell": cell.key, "harness": HARNESS_VERSION, **offered}),
    )


def _request_count(load: Load, concurrency: int | None, rate: float | None) -> int | None:
    """Return how many requests are offered; None where the server's own speed decides it."""
    rule = load.requests
    if rate is not None:
        span_s = rule.duration_s or rule.per_concurrency
        return max(rule.min, math.ceil(rate * span_s))
    assert concurrency is not None
    if rule.duration_s is not None:
        return None
    return max(rule.min, rule.per_concurrency * concurrency, concurrency)
