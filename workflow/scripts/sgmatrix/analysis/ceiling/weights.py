"""Parameters and bytes: of a whole model, on one device, and per cached token.

Source  the projections of each layer as the model's class defines them; checked against the
        model cards' totals and a published KV pool (docs/ceiling.md).
"""

from __future__ import annotations

import math

from sgmatrix.analysis.ceiling.parallel import Parallel
from sgmatrix.core.facts.formats import BYTES
from sgmatrix.core.facts.model import Mla, Shape

PROJECTIONS = 3
"""Gate, up and down projection of a feed-forward network."""


def attention_parameters(model: Shape, ways: int) -> float:
    """Return the attention parameters of one layer that one of `ways` devices holds.

    The factored projections of MLA are on every device; KV heads that are fewer than the devices
    are on several.
    """
    h, a = model.hidden, model.attention
    if isinstance(a, Mla):
        per_head = a.nope + a.rope
        query = (
            h * a.q_lora + a.q_lora * a.heads * per_head / ways
            if a.q_lora
            else h * a.heads * per_head / ways
        )
        latent = h * (a.kv_lora + a.rope)
        return query + latent + a.heads / ways * (a.kv_lora * (a.nope + a.v) + a.v * h)
    kv_heads = max(1, math.ceil(a.kv_heads / ways))
    return 2 * h * a.head_dim * (a.heads / ways + kv_heads)


def indexer_parameters(model: Shape) -> int:
    """Return the parameters of one layer's sparse-attention index, on every device."""
    i, a = model.indexer, model.attention
    if i is None or not isinstance(a, Mla):
        return 0
    return (a.q_lora or model.hidden) * i.heads * i.dim + model.hidden * (i.dim + i.heads)


def expert_parameters(model: Shape) -> int:
    """Return the parameters of one routed expert in one layer."""
    return PROJECTIONS * model.hidden * model.moe.inter if model.moe else 0


def shared_parameters(model: Shape) -> int:
    """Return the parameters of the shared experts of one layer."""
    moe = model.moe
    return PROJECTIONS * model.hidden * moe.shared_inter * moe.shared if moe else 0


def parameters(model: Shape) -> dict[str, float]:
    """Return the parameters of the whole model by part, as `Precision` names them."""
    moe = model.moe
    return {
        "attention": attention_parameters(model, 1) * model.layers,
        "indexer": indexer_parameters(model) * model.layers,
        "routed": expert_parameters(model) * moe.experts * model.moe_layers if moe else 0,
        "shared": shared_parameters(model) * model.moe_layers,
        "router": model.hidden * moe.experts * model.moe_layers if moe else 0,
        "dense": PROJECTIONS * model.hidden * model.dense_inter * model.dense_layers,
        "embedding": model.vocabulary * model.hidden,
        "lm_head": 0 if model.tied else model.vocabulary * model.hidden,
    }


def active_parameters(model: Shape) -> float:
    """Return the parameters that one token is multiplied with; the embedding is looked up."""
    p, moe = parameters(model), model.moe
    routed = p["routed"] * moe.top_k / moe.experts if moe else 0.0
    return sum(p.values()) - p["embedding"] - p["routed"] + routed


def model_bytes(model: Shape) -> float:
    """Return the bytes of all weights, once."""
    return sum(n * BYTES[getattr(model.precision, part)] for part, n in parameters(model).items())


def device_weight_bytes(model: Shape, parallel: Parallel) -> float:
    """Return the bytes of the weights that one device holds, the mean over pipeline stages."""
    p, q = parameters(model), model.precision
    t, a = parallel.tp, parallel.attention_tp
    held = {
        "attention": attention_parameters(model, a) * model.layers,
        "indexer": p["indexer"],
        "routed": p["routed"] / t,
        "shared": p["shared"] / a,
        "router": p["router"],
        "dense": p["dense"] / a,
        "embedding": p["embedding"] / t,
        "lm_head": p["lm_head"] / t,
    }
    return sum(n * BYTES[getattr(q, part)] for part, n in held.items()) / parallel.pp


def kv_token_bytes(model: Shape, ways: int) -> float:
    """Return the bytes that one cached token takes on one of `ways` devices, all layers.

    MLA's latent is whole on every device; GQA's heads are shared out. The sparse-attention index
    caches a key of its own per token, with a 4-byte scale where it is 8 bits wide.
    """
    return attended_token_bytes(model, ways) + index_token_bytes(model)


def attended_token_bytes(model: Shape, ways: int) -> float:
    """Return the bytes that attention reads of one cached token on one device, all layers."""
    a, each = model.attention, BYTES[model.precision.kv]
    if isinstance(a, Mla):
        return (a.kv_lora + a.rope) * each * model.layers
    return 2 * max(1, math.ceil(a.kv_heads / ways)) * a.head_dim * each * model.layers


def index_token_bytes(model: Shape) -> float:
    """Return the bytes that the sparse-attention index caches of one token, all layers."""
    if model.indexer is None:
        return 0.0
    each = BYTES[model.precision.index_kv]
    scale = 4 if each == 1 else 0
    return (model.indexer.dim * each + scale) * model.layers
