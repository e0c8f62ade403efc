"""The core of torch operations: every router and the general form, on any device.

Static shapes, no host synchronisation, no branch on data: it can be captured in a CUDA graph.
It costs some 25 launches per layer, so on a GPU it is no fair on-arm (README).

Notation  n rows, E routed experts, k columns of the router, B = S_base as a mask [E].
"""

from __future__ import annotations

import torch

from sglang_oea.router import Router
from sglang_oea.settings import Settings

NEVER = float("-inf")
ALWAYS = float("inf")
LAST = -3.0e38
"""Below every finite score, above NEVER: experts out of reach that may still fill a slot."""
TINY = 1e-20


def scores_of(logits: torch.Tensor, scoring: str) -> torch.Tensor:
    """Return the router's scores, [n, E] float32."""
    x = logits.float()
    if scoring == "softmax":
        return x.softmax(-1)
    if scoring == "sigmoid":
        return x.sigmoid()
    return torch.nn.functional.softplus(x).sqrt()


def weighing(
    logits: torch.Tensor, ids: torch.Tensor, own: torch.Tensor, scoring: str
) -> torch.Tensor:
    """Return scores of `ids` up to a factor of the row, [n, columns of ids].

    Softmax is taken relative to the best of the row's `own` experts, so that it cannot
    underflow to nothing but zeros.
    """
    x = logits.float()
    at = x.gather(1, ids)
    if scoring == "softmax":
        return (at - x.gather(1, own).amax(-1, keepdim=True)).exp()
    return scores_of(at, scoring)


def group_mask(keys: torch.Tensor, router: Router) -> torch.Tensor:
    """Return which experts lie in a row's allowed groups, [n, E] bool."""
    n, experts = keys.shape
    size = experts // router.groups
    grouped = keys.view(n, router.groups, size)
    # DeepSeek-V3 adds the two best of a group, DeepSeek-V2 (no bias) takes the best.
    strength = grouped.topk(2, dim=-1).values.sum(-1) if router.biased else grouped.amax(-1)
    best = strength.sort(dim=-1, descending=True, stable=True).indices[:, : router.top_groups]
    allowed = torch.zeros_like(strength, dtype=torch.bool).scatter(1, best, True)
    return allowed.unsqueeze(-1).expand(n, router.groups, size).reshape(n, experts)


def ranking_of(logits: torch.Tensor, bias: torch.Tensor | None, router: Router) -> torch.Tensor:
    """Return by what experts are ranked, [n, E] float32; NEVER outside the allowed groups."""
    keys = logits.float() if bias is None else scores_of(logits, router.scoring) + bias.float()
    return keys.masked_fill(~group_mask(keys, router), NEVER) if router.grouped else keys


def reroute(
    logits: torch.Tensor,
    bias: torch.Tensor | None,
    ids: torch.Tensor,
    weights: torch.Tensor,
    valid: torch.Tensor | None,
    *,
    router: Router,
    settings: Settings,
    fill: str,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the ids and weights of OEA, shaped and typed as those of the engine.

    Args:
        logits: [n, E] router logits.
        bias: [E] correction bias, or None.
        ids: [n, columns] the engine's experts in any order; shared columns last.
        weights: [n, columns] their weights, with whatever scale the engine put in.
        valid: a device scalar, rows from it on are padding; None: no row is.
        router: how the model ranks and weighs.
        settings: k0 and the general form.
        fill: repeat, mask or distinct.
    """
    n, k = ids.shape[0], router.top_k
    own, own_weights = ids[:, :k].long(), weights[:, :k].float()
    known = (own >= 0) & (own < router.experts)
    live = known.all(-1)  # a row that the engine has masked already stays as it is
    if valid is not None:
        live = live & (torch.arange(n, device=ids.device) < valid)
    own = own.clamp(0, router.experts - 1)
    keys = ranking_of(logits, bias, router)

    base, best = _base(keys, logits, own, router, settings)
    base = base & live.unsqueeze(1)
    # The union over the batch: amax is a logical OR, and does not depend on the order.
    union = torch.zeros(router.experts, dtype=torch.int32, device=ids.device)
    union = union.scatter_reduce(0, own.flatten(), base.flatten().int(), "amax").bool()

    lifted = keys.masked_fill(_mark(own, base, router.experts), ALWAYS)
    wanted = lifted.masked_fill(~(union | (lifted == ALWAYS)), NEVER)
    if settings.max_rank is not None and settings.max_rank < router.experts:
        order = lifted.sort(dim=-1, descending=True, stable=True).indices
        near = _mark(order[:, : settings.max_rank], None, router.experts)
        wanted = wanted.masked_fill(~near, NEVER)
    found = wanted.sort(dim=-1, descending=True, stable=True)
    chosen, used = found.indices[:, :k], found.values[:, :k] > NEVER
    if settings.k_max is not None and settings.k_max < k:
        used = used & (torch.arange(k, device=ids.device) < settings.k_max)

    raw = weighing(logits, chosen, own, router.scoring) * used
    whole = raw if router.renormalize else weighing(logits, own, own, router.scoring)
    scale = own_weights.sum(-1, keepdim=True) / (whole.sum(-1, keepdim=True) + TINY)
    new_ids = _filled(chosen, used, best, keys, fill).to(ids.dtype)
    new_weights = (raw * scale).to(weights.dtype)
    stays = ~live.unsqueeze(1)
    new_ids = torch.where(stays, ids[:, :k], new_ids)
    new_weights = torch.where(stays, weights[:, :k], new_weights)
    if router.shared:
        new_ids = torch.cat([new_ids, ids[:, k:]], 1)
        new_weights = torch.cat([new_weights, weights[:, k:]], 1)
    return new_ids, new_weights


def _base(
    keys: torch.Tensor,
    logits: torch.Tensor,
    own: torch.Tensor,
    router: Router,
    settings: Settings,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which of the engine's columns are base sets [n, k], and each best expert [n, 1]."""
    key = keys.gather(1, own)
    mine, other = key.unsqueeze(2), key.unsqueeze(1)
    lower = own.unsqueeze(1) < own.unsqueeze(2)
    ahead = (other > mine) | ((other == mine) & lower)  # [n, k, k]: column d is before column c
    rank = ahead.sum(-1)
    base = rank < settings.k0
    if settings.p < 1:
        mass = scores_of(logits, router.scoring)
        mass = (mass / (mass.sum(-1, keepdim=True) + TINY)).gather(1, own)
        base = base & ((ahead * mass.unsqueeze(1)).sum(-1) < settings.p)
    return base, (own * (rank == 0)).sum(-1, keepdim=True)


def _mark(ids: torch.Tensor, which: torch.Tensor | None, experts: int) -> torch.Tensor:
    """Return a mask [n, experts] of the ids [n, m] for which `which` [n, m] holds."""
    hit = torch.ones_like(ids, dtype=torch.int32) if which is None else which.int()
    empty = torch.zeros(ids.shape[0], experts, dtype=torch.int32, device=ids.device)
    return empty.scatter_reduce(1, ids, hit, "amax").bool()


def _filled(
    chosen: torch.Tensor, used: torch.Tensor, best: torch.Tensor, keys: torch.Tensor, fill: str
) -> torch.Tensor:
    """Return the ids [n, k] with something in each unused slot."""
    if fill == "repeat":
        return torch.where(used, chosen, best)
    if fill == "mask":
        return torch.where(used, chosen, torch.full_like(chosen, -1))
    taken = _mark(chosen, used, keys.shape[1])
    rest = keys.clamp(min=LAST).masked_fill(taken, NEVER)
    spare = rest.sort(dim=-1, descending=True, stable=True).indices[:, : chosen.shape[1]]
    nth = ((~used).long().cumsum(-1) - 1).clamp(min=0)  # unused slots before this one
    return torch.where(used, chosen, spare.gather(1, nth))
