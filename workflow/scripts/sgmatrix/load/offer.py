"""What one call of a load client offers: a load point, or a warm-up wave in its shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sgmatrix.core.errors import SgmatrixError

_PILOT_AT_LEAST = 2
_PILOT_SEED = 1000
"""Beyond the seeds of the warm-up waves."""
_WAVE_AT_MOST = 256
"""Requests of a warm-up wave where no concurrency is asked for."""


@dataclass(frozen=True)
class Offer:
    """One call of the client."""

    dataset: str
    concurrency: int | None
    """Requests in flight at the most; None: no bound, in the open loop."""
    input_len: int
    output_len: int
    requests: int
    seed: int
    request_rate: float | None = None
    """Requests per second; None: the closed loop."""
    burstiness: float = 1.0
    prompts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def connections(self) -> int:
        """Sockets that may be open at once."""
        return self.concurrency or self.requests


def in_flight(point: Mapping[str, Any]) -> int | None:
    """Return how many requests a load point has in flight at the most; None: no bound."""
    asked: int | None = point["concurrency"] or point.get("max_concurrency")
    return asked


def point_offer(point: Mapping[str, Any], warmup: Mapping[str, Any]) -> Offer:
    """Return what is offered for a load point.

    Args:
        point: the load point, from the plan.
        warmup: what the last wave at this concurrency said: `request_s` requests per second at
            `concurrency`; a duration needs it.

    Raises:
        SgmatrixError: `client_setup` when the number of requests cannot be told.
    """
    requests = point["requests"]
    if requests is None:
        rate, at = warmup.get("request_s"), warmup.get("concurrency")
        if not rate or not at:
            raise SgmatrixError(
                "client_setup",
                f"{point['load_id']}: without a warm-up wave it is not known how many requests "
                f"take {point['duration_s']:g} s",
                fix="give load.requests.per_concurrency, or warmup.max_waves above 0",
            )
        if at != in_flight(point):
            raise SgmatrixError(
                "client_setup", f"{point['load_id']}: the last wave ran {at} requests at once"
            )
        requests = max(point["min_requests"], math.ceil(rate * point["duration_s"]))
    return _offer(point, in_flight(point), requests, point["seed"], point.get("request_rate"))


def wave_offer(points: list[dict[str, Any]], number: int) -> Offer:
    """Return a warm-up wave: the most requests at once that any point has, all at once.

    Its prompts are others than the measured ones, so that nothing of them is cached.
    """
    hardest = max(points, key=_width)
    width = _width(hardest)
    seed = (hardest["seed"] + 1 + number) % 2**31
    return _offer(hardest, width, width, seed, None)


def pilot_offer(point: Mapping[str, Any], warmup: Mapping[str, Any]) -> Offer | None:
    """Return a short load at a point's own concurrency, which says how fast its requests go.

    None where it is not needed: the number of requests is given, or the warm-up ran so many at
    once. Its prompts are others than the measured ones.
    """
    width = in_flight(point)
    if point["requests"] is not None or not width or warmup.get("concurrency") in (None, width):
        return None
    seed = (point["seed"] + _PILOT_SEED) % 2**31
    return _offer(point, width, max(_PILOT_AT_LEAST, width), seed, None)


def _width(point: Mapping[str, Any]) -> int:
    """Return how many requests a warm-up wave of a point has at once."""
    asked = in_flight(point)
    rate: float = point["request_rate"] or 0.0
    return asked if asked is not None else min(max(8, math.ceil(rate)), _WAVE_AT_MOST)


def _offer(
    point: Mapping[str, Any], concurrency: int | None, requests: int, seed: int, rate: float | None
) -> Offer:
    prompts = point.get("prompts") or {}
    if groups := prompts.get("groups"):
        groups = min(groups, max(1, requests // 2))  # alone in its group, a prompt shares nothing
        prompts = {**prompts, "groups": groups}
        requests = math.ceil(requests / groups) * groups  # the client makes whole groups
    return Offer(
        dataset=point["dataset"],
        concurrency=concurrency,
        input_len=point["input_len"],
        output_len=point["output_len"],
        requests=requests,
        seed=seed,
        request_rate=rate,
        burstiness=point.get("burstiness", 1.0) if rate is not None else 1.0,
        prompts=prompts,
    )
