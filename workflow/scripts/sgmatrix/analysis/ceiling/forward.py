"""One pass of a model over a batch of tokens: seconds of each part on one device.

hard       max(memory, compute, link), each summed over the parts: all three at their peaks and
           overlapped without a gap.
practical  sum over the parts of max(memory, compute), and the collectives.

Source  bytes and FLOP of each part from its dimensions; 2 FLOP per weight and token; attention
        reads the cached tokens it attends to (absorbed MLA at decode: 2 H (2 latent + rope) FLOP
        per token, layer and attended token; GQA: 4 H d).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from sgmatrix.analysis.ceiling import weights
from sgmatrix.analysis.ceiling.links import Tier, allreduce_s, shuffle_s
from sgmatrix.analysis.ceiling.parallel import Parallel
from sgmatrix.analysis.ceiling.routing import distinct_experts, straggler
from sgmatrix.core.facts.formats import BYTES, UNIT, Format, Unit
from sgmatrix.core.facts.hardware import Device
from sgmatrix.core.facts.model import Mla, Shape

Bound = Literal["memory", "compute", "link"]

_ACTIVATION_BYTES = 2
"""Hidden states travel as bf16."""
_DISPATCH_BYTES = 1
"""Tokens travel to their experts as fp8, and come back as bf16."""


@dataclass(frozen=True)
class Routing:
    """How many experts a batch opens."""

    free_experts: float | None = None
    """OEA: experts that each token may choose freely (k0); None: the model's top k."""
    distinct: float | None = None
    """Distinct experts per layer as a probe counted them; None: uniform routing is assumed."""
    stays: bool = False
    """All experts of a token are where it is, so that all-to-all has nothing to send."""


@dataclass(frozen=True)
class Part:
    """What one part of a pass costs on one device."""

    memory_s: float
    compute_s: float

    @property
    def longer_s(self) -> float:
        return max(self.memory_s, self.compute_s)


@dataclass(frozen=True)
class Pass:
    """Seconds of one pass."""

    tier: Tier
    tokens: float
    parts: Mapping[str, Part]
    link_s: float
    distinct_experts: float | None
    """Per layer; None: the model has no routed experts."""

    @property
    def memory_s(self) -> float:
        return sum(part.memory_s for part in self.parts.values())

    @property
    def compute_s(self) -> float:
        return sum(part.compute_s for part in self.parts.values())

    @property
    def seconds(self) -> float:
        if self.tier == "hard":
            return max(self.memory_s, self.compute_s, self.link_s)
        return sum(part.longer_s for part in self.parts.values()) + self.link_s

    @property
    def bound(self) -> Bound:
        """What takes most of the pass."""
        if self.tier == "hard":
            named = {"memory": self.memory_s, "compute": self.compute_s}
        else:
            parts = self.parts.values()
            named = {
                "memory": sum(p.memory_s for p in parts if p.memory_s >= p.compute_s),
                "compute": sum(p.compute_s for p in parts if p.compute_s > p.memory_s),
            }
        best: Bound = "memory" if named["memory"] >= named["compute"] else "compute"
        return "link" if self.link_s > named[best] else best


@dataclass(frozen=True)
class _Load:
    """Bytes that a device reads and FLOP that it does for one part."""

    name: str
    bytes: float
    flop: float
    unit: Unit


def forward(
    model: Shape,
    device: Device,
    parallel: Parallel,
    tier: Tier,
    *,
    tokens: float,
    context: float,
    spread: float = 0.0,
    prefill: bool = False,
    logits: float | None = None,
    routing: Routing | None = None,
) -> Pass:
    """Return the seconds of one pass; pipeline stages and replicas are the caller's.

    Args:
        model: its shape.
        device: what each device can do.
        parallel: how the model is spread.
        tier: hard or practical.
        tokens: of the whole batch; at decode one of each running request.
        context: tokens that each token attends to, the mean.
        spread: by how much the first and the last token's context differ from it.
        prefill: the tokens are prompts, whose keys are read once for all of them.
        logits: rows of the output projection; None: one for each token.
        routing: of the experts.
    """
    routing = routing or Routing()
    opened = _opened(model, tokens, routing)
    rows = tokens if logits is None else logits
    loads = _loads(model, parallel, tier, tokens, context, spread, prefill, rows, opened)
    efficiency = 1.0 if tier == "hard" else device.practical_compute
    bytes_s = device.memory_bytes_s if tier == "hard" else device.practical_memory_bytes_s
    parts = {
        one.name: Part(
            one.bytes / bytes_s,
            one.flop / (device.flops_s[one.unit] * efficiency) if device.flops_s else 0.0,
        )
        for one in loads
    }
    link = _link_s(model, device, parallel, tier, tokens, rows, routing)
    return Pass(tier, tokens, parts, link, opened)


def _opened(model: Shape, tokens: float, routing: Routing) -> float | None:
    moe = model.moe
    if moe is None:
        return None
    if routing.distinct is not None:
        return routing.distinct
    return distinct_experts(moe.experts, routing.free_experts or moe.top_k, tokens)


def _loads(
    model: Shape,
    parallel: Parallel,
    tier: Tier,
    tokens: float,
    context: float,
    spread: float,
    prefill: bool,
    rows: float,
    opened: float | None,
) -> Iterator[_Load]:
    q, t = model.precision, parallel.tp
    mine = max(1.0, tokens / parallel.attention_groups)  # tokens of one attention group

    def part(name: str, fmt: Format, held: float, n: float, extra: float = 0) -> _Load:
        return _Load(name, held * BYTES[fmt] + extra, 2 * n * held, UNIT[fmt])

    held = weights.attention_parameters(model, parallel.attention_tp) * model.layers
    yield part("attention", q.attention, held, mine)
    if model.indexer:
        yield _indexer(model, mine, context, prefill)
    yield _attention_core(model, parallel, mine, _attended(model, context, spread), prefill)
    if model.moe and opened is not None:
        yield _experts(model, parallel, tier, tokens, opened)
        if model.moe.shared:
            held = weights.shared_parameters(model) * model.moe_layers / parallel.attention_tp
            yield part("shared", q.shared, held, mine)
        yield part("router", q.router, model.hidden * model.moe.experts * model.moe_layers, mine)
    if model.dense_layers:
        ffn = weights.PROJECTIONS * model.hidden * model.dense_inter * model.dense_layers
        yield part("dense", q.dense, ffn / parallel.attention_tp, mine)
    yield part("lm_head", q.lm_head, model.vocabulary * model.hidden / t, rows)


def _indexer(model: Shape, tokens: float, context: float, prefill: bool) -> _Load:
    """Every cached key is scored, by few heads, to pick those that are attended."""
    i, fmt = model.indexer, model.precision.indexer
    assert i is not None
    held = weights.indexer_parameters(model) * model.layers
    read = 0.0 if prefill else tokens * context * weights.index_token_bytes(model)
    scored = 2 * tokens * context * i.heads * i.dim * model.layers
    return _Load("indexer", held * BYTES[fmt] + read, 2 * tokens * held + scored, UNIT[fmt])


def _attended(model: Shape, context: float, spread: float) -> float:
    """Return the tokens that attention reads, the mean over contexts that lie evenly."""
    if model.indexer is None:
        return context
    topk, low, high = model.indexer.topk, context - spread, context + spread
    if high <= topk or low >= topk:
        return min(context, topk)
    return ((topk**2 - low**2) / 2 + topk * (high - topk)) / (high - low)


def _attention_core(
    model: Shape, parallel: Parallel, tokens: float, attended: float, prefill: bool
) -> _Load:
    a, ways = model.attention, parallel.attention_tp
    read = weights.attended_token_bytes(model, ways) * attended * (1 if prefill else tokens)
    if isinstance(a, Mla):
        each = (a.nope + a.rope + a.v) if prefill else (2 * a.kv_lora + a.rope)
        flop = 2 * tokens * a.heads / ways * each * attended * model.layers
    else:
        flop = 4 * tokens * a.heads / ways * a.head_dim * attended * model.layers
    return _Load("attention_core", read, flop, "bf16")


def _experts(model: Shape, parallel: Parallel, tier: Tier, tokens: float, opened: float) -> _Load:
    """Experts are split by `tp` inside or by `ep` among devices; both share bytes evenly."""
    moe, fmt = model.moe, model.precision.routed
    assert moe is not None
    mine = weights.expert_parameters(model) * model.moe_layers / parallel.tp
    slowest = (1.0, 1.0)
    if parallel.ep > 1 and tier == "practical":
        slowest = straggler(moe.experts, moe.top_k, max(1, round(tokens)), parallel.ep)
    read = opened * mine * BYTES[fmt] * slowest[0]
    return _Load("experts", read, 2 * tokens * moe.top_k * mine * slowest[1], UNIT[fmt])


def _link_s(
    model: Shape,
    device: Device,
    parallel: Parallel,
    tier: Tier,
    tokens: float,
    rows: float,
    routing: Routing,
) -> float:
    """Two all-reduces a layer, or what DP attention moves instead; embedding and logits."""
    t, link, hidden = parallel.tp, device.link, tokens * model.hidden * _ACTIVATION_BYTES
    if t <= 1:
        return 0.0
    whole = allreduce_s(link, hidden, t, tier)
    if not parallel.dp_attention:
        experts = whole
        if parallel.all_to_all and tier == "hard":
            experts = min(whole, _exchange_s(model, device, parallel, tier, tokens, routing))
        layers = (2 * model.layers - model.moe_layers) * whole + model.moe_layers * experts
    else:
        moe_s = _exchange_s(model, device, parallel, tier, tokens, routing)
        inside = allreduce_s(link, hidden / parallel.attention_groups, parallel.attention_tp, tier)
        layers = model.moe_layers * moe_s + (model.layers + model.dense_layers) * inside
    vocabulary = rows * model.vocabulary / t * _ACTIVATION_BYTES * (t - 1) / t
    embedding = 0.0 if parallel.dp_attention else whole  # each group holds all of it
    return layers + embedding + shuffle_s(link, vocabulary, t, tier)


def _exchange_s(
    model: Shape,
    device: Device,
    parallel: Parallel,
    tier: Tier,
    tokens: float,
    routing: Routing,
) -> float:
    """Seconds to bring one layer's tokens to their experts and back.

    The hard tier takes the cheaper way whatever the server does, and sends tokens in the format
    of the experts where that is narrower.
    """
    t, link, moe = parallel.tp, device.link, model.moe
    if moe is None:
        return 0.0
    others = tokens * model.hidden * (t - 1) / t
    gather = shuffle_s(link, others * _ACTIVATION_BYTES, t, tier)
    reached = 0.0 if routing.stays else t * (1 - (1 - 1 / t) ** moe.top_k) * (t - 1) / t
    sent = tokens / t * reached * model.hidden
    back = shuffle_s(link, sent * _ACTIVATION_BYTES, t, tier)
    if tier == "hard":
        narrow = min(_DISPATCH_BYTES, BYTES[model.precision.routed])
        there = shuffle_s(link, others * narrow, t, tier)
        return min(there + gather, shuffle_s(link, sent * narrow, t, tier) + back)
    by_token = shuffle_s(link, sent * _DISPATCH_BYTES, t, tier) + back
    return by_token if parallel.all_to_all else 2 * gather
