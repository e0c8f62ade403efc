"""A whole load point: prompts and answers share the devices of a server.

C requests are in flight, each with I prompt and O output tokens. While one generation of them is
answered, the devices prefill C I tokens, which yields the first token of each answer, and do
O - 1 decode steps:

    output throughput = C O / ((O - 1) t_decode(C) + C I t_prefill)
    TPOT with prefill = t_decode(C) + (C - 1) I t_prefill / O
"""

from __future__ import annotations

from dataclasses import dataclass

from sgmatrix.analysis.ceiling.capacity import Pool
from sgmatrix.analysis.ceiling.decode import Speculation, decode_pass, prefill_pass, tpot_s
from sgmatrix.analysis.ceiling.forward import Bound, Pass, Routing
from sgmatrix.analysis.ceiling.links import Tier
from sgmatrix.analysis.ceiling.parallel import Parallel
from sgmatrix.core.facts.hardware import Device
from sgmatrix.core.facts.model import Shape

DEFAULT_CHUNK = 8192
"""Prompt tokens of one prefill pass, where no flag says otherwise."""


@dataclass(frozen=True)
class Server:
    """A configuration as the ceiling sees it."""

    model: Shape
    device: Device
    parallel: Parallel
    pool: Pool | None = None
    """None: the KV pool bounds nothing."""
    max_running: int | None = None
    """Of one replica."""
    chunk: int = DEFAULT_CHUNK
    routing: Routing | None = None
    """Of a decode step."""
    prefill_routing: Routing | None = None
    """None: uniform."""
    speculation: Speculation | None = None
    mixed: bool = False
    """Prompts ride on decode steps (`enable_mixed_chunk`): weights are read once for both."""


@dataclass(frozen=True)
class Ceiling:
    """What a tier allows at one load point."""

    tier: Tier
    running: float
    """Requests of all replicas that are decoded at once."""
    step: Pass
    """The decode step of one replica."""
    tpot_s: float
    """Of decode alone."""
    prefill_tok_s: float
    """Of all replicas, when nothing is decoded; inf: there is nothing to prefill."""
    output_tok_s: float
    tpot_with_prefill_s: float

    @property
    def bound(self) -> Bound:
        return self.step.bound


def ceiling(
    server: Server,
    tier: Tier,
    *,
    concurrency: float,
    input_len: float,
    output_len: float,
    cached_share: float = 0.0,
) -> Ceiling:
    """Return the ceiling of a closed loop.

    Args:
        server: the configuration.
        tier: hard or practical.
        concurrency: requests in flight.
        input_len: prompt tokens of a request, the mean.
        output_len: output tokens of a request, the mean.
        cached_share: part of the prompt tokens that the prefix cache answers.
    """
    own = input_len * (1 - cached_share)  # requests may share what the prefix cache holds
    running = running_requests(server, concurrency, own, output_len)
    replicas = server.parallel.replicas
    mine = running / replicas
    step = decode_pass(
        server.model,
        server.device,
        server.parallel,
        tier,
        batch=max(1.0, mine),
        context=input_len + output_len / 2,
        spread=output_len / 2,
        routing=server.routing,
        speculation=server.speculation,
    )
    tpot = tpot_s(step, server.speculation)
    token_s = prefill = 0.0
    steps = output_len
    mixed_s: float | None = None
    if own > 0:
        chunk = min(server.chunk, max(1.0, mine * input_len))
        one = prefill_pass(
            server.model,
            server.device,
            server.parallel,
            tier,
            chunk=chunk,
            prompt=input_len,
            routing=server.prefill_routing,
        )
        token_s = one.seconds / chunk
        prefill = mine * own * token_s
        steps -= 1  # the first token comes of the prefill
        if server.mixed and tier == "hard":
            mixed_s = _mixed_s(step, one, steps * tpot / step.seconds, mine * own / chunk)
    wall = steps * tpot + prefill if mixed_s is None else mixed_s
    others = max(0.0, mine - 1) / mine * prefill / output_len  # its own prompt is its TTFT
    return Ceiling(
        tier=tier,
        running=running,
        step=step,
        tpot_s=tpot,
        prefill_tok_s=replicas / token_s if token_s else float("inf"),
        output_tok_s=running * output_len / wall,
        tpot_with_prefill_s=tpot + others if mixed_s is None else tpot,
    )


def _mixed_s(step: Pass, prompts: Pass, steps: float, passes: float) -> float:
    """Return the least seconds of decode steps that prompts ride on: no byte is read for these."""
    return max(
        steps * step.memory_s,
        steps * step.compute_s + passes * prompts.compute_s,
        steps * step.link_s + passes * prompts.link_s,
        min(passes * prompts.seconds, prompts.memory_s),  # one pass at the least
    )


def running_requests(
    server: Server, concurrency: float, input_len: float, output_len: float
) -> float:
    """Return how many of the requests in flight are decoded at once, over all replicas."""
    replicas = server.parallel.replicas
    limits = [concurrency]
    if server.pool is not None:
        limits.append(replicas * server.pool.requests(input_len, output_len))
    if server.max_running is not None:
        limits.append(replicas * server.max_running)
    return max(1.0, min(limits))
