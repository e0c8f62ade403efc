"""Inputs on which a core and the reference must agree to the last id.

The reference computes in double precision, a core in single: two experts whose keys differ
by less than rounding could be ranked either way, and one flip changes the whole batch's
union. So rows are drawn until their keys are either equal by construction (the same logit
and bias) or clearly apart.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch

from sglang_oea.reference import OUT_OF_REACH, Rows, in_order, ranking, score
from sglang_oea.router import Router
from sglang_oea.settings import Settings

APART = 4e-6
"""Least distance of two keys that are not equal; float32 scores err by some 1e-7."""

KINDS = ("spread", "ties", "extremes")
_TRIES = 200
_SCALE = 2.5  # as a routed_scaling_factor that the engine has put into the weights


@dataclass(frozen=True)
class Case:
    """One step, as tensors for a core and as lists for the reference."""

    kind: str
    rows: Rows
    logits: torch.Tensor
    bias: torch.Tensor | None
    ids: torch.Tensor
    weights: torch.Tensor
    valid: torch.Tensor | None


def make_case(
    kind: str, n: int, router: Router, settings: Settings, *,
    dtype: torch.dtype, device: torch.device | str, seed: int, padded: int = 0,
) -> Case:  # fmt: skip
    """Return a step of n rows.

    Args:
        kind: spread (normal logits), ties (few distinct logits) or extremes (very large ones).
        n: rows.
        router: whose engine is imitated: it chooses the k best, and shuffles its columns.
        settings: for p, whose edge rows must not touch.
        dtype: of the logits.
        device: of the tensors.
        seed: of everything that is drawn.
        padded: the last rows of the step that are padding; 0: the engine does not say.
    """
    with torch.device("cpu"):  # whatever the engine's default device is
        return _made(kind, n, router, settings, dtype, device, seed, padded)


def _made(
    kind: str, n: int, router: Router, settings: Settings, dtype: torch.dtype,
    device: torch.device | str, seed: int, padded: int,
) -> Case:  # fmt: skip
    draw = random.Random(f"{kind} {n} {router} {seed}")  # noqa: S311 - test data, no secret
    noise = torch.Generator().manual_seed(seed * 7919 + n)
    bias = None
    if router.biased:
        bias = torch.randn(router.experts, generator=noise) * 0.1
        if kind == "ties":
            bias = (bias > 0).float() * 0.25
    logits = torch.empty(n, router.experts, dtype=dtype)
    bad = torch.ones(n, dtype=torch.bool)
    for _ in range(_TRIES):
        logits[bad] = _drawn(kind, int(bad.sum()), router.experts, noise).to(dtype)
        bad = _too_close(logits.double(), bias, router, settings)
        if not bad.any():
            break
    else:
        raise RuntimeError(f"no rows apart were found: {kind}, {router}")

    lists = logits.double().tolist()
    bias_list = None if bias is None else bias.double().tolist()
    ids, weights = [], []
    for row in lists:
        own, own_weights = _engine_choice(row, bias_list, router, draw)
        ids.append([*own, *(router.experts + s for s in range(router.shared))])
        weights.append([*own_weights, *[0.4] * router.shared])
    valid = n - padded
    k = router.top_k
    weight_tensor = torch.tensor(weights, dtype=torch.float32)
    return Case(
        kind=kind,
        rows=Rows(
            lists,
            bias_list,
            [x[:k] for x in ids],
            weight_tensor[:, :k].double().tolist(),
            valid,
        ),
        logits=logits.to(device),
        bias=None if bias is None else bias.to(device),
        ids=torch.tensor(ids, dtype=torch.int32, device=device),
        weights=weight_tensor.to(device),
        valid=torch.tensor([valid], dtype=torch.int32, device=device) if padded else None,
    )


def _drawn(kind: str, n: int, experts: int, noise: torch.Generator) -> torch.Tensor:
    x = torch.randn(n, experts, generator=noise) * 1.5
    if kind == "ties":
        return (x * 2).round() / 2
    if kind == "extremes":
        huge = torch.randint(0, 4, (n, experts), generator=noise)
        return torch.where(huge == 0, x, torch.tensor([0.0, 80.0, -80.0, -3e4])[huge])
    return x


def _too_close(
    logits: torch.Tensor, bias: torch.Tensor | None, router: Router, settings: Settings
) -> torch.Tensor:
    """Return which rows [n] have keys, group strengths or a mass at p within rounding."""
    scores = logits.softmax(-1) if router.scoring == "softmax" else logits.sigmoid()
    if router.scoring == "sqrtsoftplus":
        scores = torch.nn.functional.softplus(logits, threshold=40).sqrt()
    bad = torch.zeros(len(logits), dtype=torch.bool)
    keys = logits
    if bias is not None:
        keys = scores + bias.double()
        bad |= _within_rounding(keys)
    if router.grouped and router.biased:
        parts = keys.view(len(keys), router.groups, -1)
        bad |= _within_rounding(parts.topk(2, dim=-1).values.sum(-1))
    if settings.p < 1:
        mass = (scores / scores.sum(-1, keepdim=True)).gather(1, keys.sort(descending=True).indices)
        # Group limits change which mass counts; being strict about all of them costs nothing.
        bad |= ((mass.cumsum(-1) - settings.p).abs() < APART).any(-1)
    return bad


def _within_rounding(keys: torch.Tensor) -> torch.Tensor:
    gap = keys.sort(dim=-1).values.diff(dim=-1)
    return ((gap > 0) & (gap < APART)).any(-1)


def _engine_choice(
    row: list[float], bias: list[float] | None, router: Router, draw: random.Random
) -> tuple[list[int], list[float]]:
    """Return what an engine's gate gives: the k best in any order, with scaled weights."""
    keys = ranking(row, bias, router)
    reach = [j for j in range(router.experts) if keys[j] != OUT_OF_REACH]
    own = in_order(keys, reach)[: router.top_k]
    top = max(row) if not router.renormalize else max(row[j] for j in own)
    raw = [score(row[j], router.scoring, top) for j in own]
    if router.renormalize:
        raw = [x / (sum(raw) + 1e-20) for x in raw]
    pairs = [(j, x * _SCALE) for j, x in zip(own, raw, strict=True)]
    draw.shuffle(pairs)
    return [j for j, _ in pairs], [x for _, x in pairs]
