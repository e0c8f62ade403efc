"""A decode step and a prefill pass of a server: pipeline, speculation, chunks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sgmatrix.analysis.ceiling.forward import Pass, Routing, forward
from sgmatrix.analysis.ceiling.links import Tier, shuffle_s
from sgmatrix.analysis.ceiling.parallel import Parallel
from sgmatrix.core.facts.hardware import Device
from sgmatrix.core.facts.model import Shape


@dataclass(frozen=True)
class Speculation:
    """Draft tokens of a speculating server; the draft model's own time is left out."""

    draft_tokens: int
    """Tokens that a step verifies per request beside the one that is certain."""
    accepted: float | None = None
    """Tokens that a step yields per request, the mean; None: all of them."""

    @property
    def verified(self) -> int:
        return self.draft_tokens + 1

    @property
    def gained(self) -> float:
        return self.accepted if self.accepted is not None else self.verified


def decode_pass(
    model: Shape,
    device: Device,
    parallel: Parallel,
    tier: Tier,
    *,
    batch: float,
    context: float,
    spread: float = 0.0,
    routing: Routing | None = None,
    speculation: Speculation | None = None,
) -> Pass:
    """Return the step in which each of `batch` running requests of one server gets its tokens.

    With `pp` stages as many micro-batches are in flight, and each device runs its layers once for
    each of them: the time of the whole model at batch / pp.
    """
    micro = max(1.0, batch / parallel.pp)
    verified = speculation.verified if speculation else 1
    one = forward(
        model,
        device,
        replace(parallel, pp=1),
        tier,
        tokens=micro * verified,
        context=context,
        spread=spread,
        routing=routing,
    )
    if parallel.pp == 1:
        return one
    hop = shuffle_s(device.link, micro * verified * model.hidden * 2, 2, tier)
    return replace(one, tokens=batch * verified, link_s=one.link_s + (parallel.pp - 1) * hop)


def tpot_s(step: Pass, speculation: Speculation | None = None) -> float:
    """Return the seconds per output token of one request."""
    return step.seconds / (speculation.gained if speculation else 1)


def prefill_pass(
    model: Shape,
    device: Device,
    parallel: Parallel,
    tier: Tier,
    *,
    chunk: float,
    prompt: float,
    routing: Routing | None = None,
) -> Pass:
    """Return a pass over `chunk` prompt tokens, which attend to half of their prompt in the mean.

    One row of logits is made per prompt.
    """
    one = forward(
        model,
        device,
        replace(parallel, pp=1),
        tier,
        tokens=chunk,
        context=prompt / 2,
        spread=prompt / 2,
        prefill=True,
        logits=chunk / prompt,
        routing=routing,
    )
    if parallel.pp == 1:
        return one
    # stages work on different chunks at once, each on its share of the layers
    stages = {
        name: replace(p, memory_s=p.memory_s / parallel.pp, compute_s=p.compute_s / parallel.pp)
        for name, p in one.parts.items()
    }
    return replace(one, parts=stages, link_s=one.link_s / parallel.pp)
