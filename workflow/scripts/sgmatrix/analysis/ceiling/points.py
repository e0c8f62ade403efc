"""The ceilings of one load point of one cell, as both tiers and as columns of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sgmatrix.analysis.ceiling.closed_loop import Ceiling, Server, ceiling, running_requests
from sgmatrix.analysis.ceiling.forward import Routing
from sgmatrix.analysis.ceiling.inputs import Reported
from sgmatrix.analysis.ceiling.links import Tier
from sgmatrix.analysis.ceiling.weights import device_weight_bytes

_UNLIMITED = 1e9
_NEAR = 1.01
"""Requests in flight of an open loop are told to 1 %."""


@dataclass(frozen=True)
class PointCeiling:
    """Both tiers at one load point."""

    hard: Ceiling
    practical: Ceiling
    impossible_tok_s: float
    """Output throughput that no routing of tokens to experts allows."""
    offered_tok_s: float | None
    """Of the open loop: what the load asks for at the most."""

    @property
    def hard_tok_s(self) -> float:
        return self._offered(self.hard.output_tok_s)

    @property
    def practical_tok_s(self) -> float:
        return self._offered(self.practical.output_tok_s)

    def _offered(self, tok_s: float) -> float:
        return tok_s if self.offered_tok_s is None else min(tok_s, self.offered_tok_s)


def point_ceiling(
    server: Server, point: Mapping[str, Any], cached_share: float = 0.0
) -> PointCeiling | None:
    """Return the ceilings of a load point.

    Args:
        server: the configuration.
        point: of `plan.json`: `concurrency` or `request_rate`, `input_len`, `output_len`.
        cached_share: part of the prompts that the prefix cache answered, where it is known.

    Returns:
        None where the weights leave no place for one request, or where an open loop on a server
        without any limit has no largest batch.
    """
    length = point["input_len"] + point["output_len"]
    if server.pool is not None and server.pool.tokens < length:
        return None
    load = {"input_len": point["input_len"], "output_len": point["output_len"]}
    rate = point.get("request_rate")
    concurrency = point.get("concurrency") or point.get("max_concurrency") or _UNLIMITED
    if running_requests(server, concurrency, **load) >= _UNLIMITED:
        return None
    given = {"concurrency": concurrency, "cached_share": cached_share, **load}
    offered = rate * point["output_len"] if rate else None
    return PointCeiling(
        hard=_at_offered(server, "hard", offered, given),
        practical=_at_offered(server, "practical", offered, given),
        impossible_tok_s=ceiling(_narrowest(server), "hard", **given).output_tok_s,
        offered_tok_s=offered,
    )


def _at_offered(
    server: Server, tier: Tier, offered: float | None, given: Mapping[str, Any]
) -> Ceiling:
    """Return the ceiling with as many requests in flight as the open loop's rate leads to."""
    most = ceiling(server, tier, **given)
    if offered is None or most.output_tok_s <= offered:
        return most
    low, high = 1.0, most.running
    while high > _NEAR * low:
        middle = (low * high) ** 0.5
        found = ceiling(server, tier, **{**given, "concurrency": middle})
        low, high = (low, middle) if found.output_tok_s >= offered else (middle, high)
    return ceiling(server, tier, **{**given, "concurrency": high})


def _narrowest(server: Server) -> Server:
    """Return the server with the fewest experts that a pass can open: those of one token.

    A probe's count is of its own prompts, and bounds no others.
    """
    moe, routing = server.model.moe, server.routing or Routing()
    if moe is None:
        return server
    fewest = float(routing.free_experts or moe.top_k)
    return replace(
        server,
        routing=Routing(routing.free_experts, fewest, stays=True),
        prefill_routing=Routing(distinct=fewest, stays=True),
    )


def point_row(server: Server, at: PointCeiling, reported: Reported) -> dict[str, Any]:
    """Return the columns of a point in the table `ceilings`."""
    hard, practical = at.hard, at.practical
    routing, step, moe = server.routing or Routing(), practical.step, server.model.moe
    distinct = step.distinct_experts
    weights = reported.weight_bytes or device_weight_bytes(server.model, server.parallel)
    pool = server.pool
    return {
        "hard_tok_s": at.hard_tok_s,
        "practical_tok_s": at.practical_tok_s,
        "impossible_tok_s": at.impossible_tok_s,
        "hard_tpot_ms": 1e3 * hard.tpot_s,
        "practical_tpot_ms": 1e3 * practical.tpot_s,
        "hard_tpot_with_prefill_ms": 1e3 * hard.tpot_with_prefill_s,
        "practical_tpot_with_prefill_ms": 1e3 * practical.tpot_with_prefill_s,
        "hard_bound": hard.bound,
        "practical_bound": practical.bound,
        "running": practical.running,
        "kv_tokens": pool.tokens if pool else None,
        "kv_source": None if pool is None else _said(reported.pool_tokens),
        "weight_bytes": weights,
        "weight_source": _said(reported.weight_bytes),
        "distinct_experts": distinct,
        "distinct_source": None
        if distinct is None
        else ("uniform" if routing.distinct is None else "probe"),
        "tokens_per_expert": step.tokens * moe.top_k / distinct if moe and distinct else None,
        "hard_memory_ms": 1e3 * hard.step.memory_s,
        "hard_compute_ms": 1e3 * hard.step.compute_s,
        "hard_link_ms": 1e3 * hard.step.link_s,
        "step_link_ms": 1e3 * step.link_s,
        "device": server.device.name,
        **{f"step_{name}_ms": 1e3 * part.longer_s for name, part in step.parts.items()},
    }


def _said(value: float | None) -> str:
    return "formula" if value is None else "server"
