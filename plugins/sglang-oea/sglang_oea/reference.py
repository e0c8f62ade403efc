"""Slow, obvious OEA with lists and sets, written from the paper. It shares no code with a core.

Source  arXiv 2511.02237, Algorithm 2; Algorithm 1 is p = 1, k_max = k, max_rank = E.
        The line `if |S_i| > k then break` is read as its prose says: at most k_max experts.
Ours    The paper has softmax routers only. With a correction bias an expert is ranked with it
        and weighed without it; groups that the router does not allow are out of reach, for
        others' experts too. Among equals the lower id comes first.
        The base set is taken from the engine's own k experts, so where equals lie on both
        sides of the k-th rank, its choice stands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sglang_oea.router import Router
from sglang_oea.settings import Settings

OUT_OF_REACH = -math.inf


@dataclass(frozen=True)
class Rows:
    """A step as the hook gets it, as lists: n rows of E logits, k ids and k weights.

    Attributes:
        valid: rows from this one on are padding.
    """

    logits: Sequence[Sequence[float]]
    bias: Sequence[float] | None
    ids: Sequence[Sequence[int]]
    weights: Sequence[Sequence[float]]
    valid: int


@dataclass(frozen=True)
class Choice:
    """What a row must become: experts with their weights, then the unused slots' ids."""

    experts: list[int]
    weights: list[float]
    spare: list[int]


def score(logit: float, scoring: str, top: float) -> float:
    """Return an expert's score, up to a factor that is the same in its row (softmax: e^-top)."""
    if scoring == "softmax":
        return math.exp(logit - top)
    if scoring == "sigmoid":
        return 1 / (1 + math.exp(-logit)) if logit > -700 else 0.0
    return math.sqrt(logit if logit > 40 else math.log1p(math.exp(logit)))


def ranking(logits: Sequence[float], bias: Sequence[float] | None, router: Router) -> list[float]:
    """Return by what a row's experts are ranked; OUT_OF_REACH in groups not allowed."""
    keys = list(logits)
    if bias is not None:
        top = max(logits)
        scores = [score(x, router.scoring, top) for x in logits]
        if router.scoring == "softmax":
            scores = [x / sum(scores) for x in scores]
        keys = [x + b for x, b in zip(scores, bias, strict=True)]
    if not router.grouped:
        return keys
    size = router.experts // router.groups
    strength = []
    for group in range(router.groups):
        best = sorted(keys[group * size : (group + 1) * size], reverse=True)
        strength.append(best[0] + best[1] if router.biased else best[0])
    order = sorted(range(router.groups), key=lambda g: (-strength[g], g))
    allowed = set(order[: router.top_groups])
    return [x if j // size in allowed else OUT_OF_REACH for j, x in enumerate(keys)]


def in_order(keys: Sequence[float], experts: Sequence[int]) -> list[int]:
    """Return experts from best to worst; among equals the lower id first."""
    return sorted(experts, key=lambda j: (-keys[j], j))


def base_set(
    own: Sequence[int], keys: Sequence[float], logits: Sequence[float], settings: Settings,
    router: Router,
) -> list[int]:  # fmt: skip
    """Return phase 1 of a row: its k0 best, or fewer where their scores reach p; best first."""
    best = in_order(keys, own)[: settings.k0]
    if settings.p >= 1:
        return best
    top = max(logits)
    total = sum(score(x, router.scoring, top) for x in logits)
    taken, mass = [], 0.0
    for expert in best:
        if mass >= settings.p:
            break
        taken.append(expert)
        mass += score(logits[expert], router.scoring, top) / total
    return taken


def reference(rows: Rows, router: Router, settings: Settings, fill: str) -> list[Choice | None]:
    """Return what each row must become; None for a row that must stay as it is (padding).

    Args:
        rows: the step.
        router: how the model ranks and weighs.
        settings: k0 and the general form.
        fill: what unused slots hold: repeat, mask or distinct.
    """
    keys = [ranking(row, rows.bias, router) for row in rows.logits]
    live = [i < rows.valid and min(own) >= 0 for i, own in enumerate(rows.ids)]
    base: list[list[int]] = []
    union: set[int] = set()
    for i, own in enumerate(rows.ids):
        base.append(base_set(own, keys[i], rows.logits[i], settings, router) if live[i] else [])
        union |= set(base[i])
    k_max = router.top_k if settings.k_max is None else min(settings.k_max, router.top_k)
    out: list[Choice | None] = []
    for i, logits in enumerate(rows.logits):
        if not live[i]:
            out.append(None)
            continue
        chosen = list(base[i])
        others = in_order(keys[i], [j for j in range(router.experts) if j not in chosen])
        walk = others[: (settings.max_rank or router.experts) - len(chosen)]
        for expert in walk:
            if len(chosen) >= k_max or keys[i][expert] == OUT_OF_REACH:
                break
            if expert in union:
                chosen.append(expert)
        out.append(_weighed(chosen, logits, i, rows, router, fill, others))
    return out


def _weighed(
    chosen: list[int], logits: Sequence[float], i: int, rows: Rows, router: Router, fill: str,
    others: list[int],
) -> Choice:  # fmt: skip
    """Return a row's experts with weights of the original scores, at the engine's own scale."""
    own = rows.ids[i]
    top = max(logits[j] for j in own)
    raw = [score(logits[j], router.scoring, top) for j in chosen]
    engine = sum(rows.weights[i])
    counted = chosen if router.renormalize else own
    divisor = sum(score(logits[j], router.scoring, top) for j in counted)
    weights = [x / divisor * engine if divisor > 0 else 0.0 for x in raw]
    empty = router.top_k - len(chosen)
    spare = {
        "repeat": [chosen[0]] * empty,
        "mask": [-1] * empty,
        "distinct": [j for j in others if j not in chosen][:empty],
    }[fill]
    return Choice(chosen, weights, spare)
