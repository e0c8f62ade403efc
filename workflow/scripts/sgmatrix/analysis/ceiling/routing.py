"""How many experts a batch opens, and how unevenly they lie on devices."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

_DRAWN_TOKENS = 20_000
_MOST_TOKENS = 512
"""Beyond it every device has all of its experts open and an even share of the tokens."""


def distinct_experts(experts: int, top_k: float, tokens: float) -> float:
    """Return the expected number of different experts that a batch opens in a layer.

    E (1 - (1 - k/E)^B): uniform, independent routing, which is the worst case for bytes; real
    routing is skewed and opens fewer.
    """
    return float(experts * (1 - (1 - top_k / experts) ** tokens))


@lru_cache
def straggler(experts: int, top_k: int, tokens: int, ways: int) -> tuple[float, float]:
    """Return E[largest device] / mean of distinct experts and of routed copies, by drawing.

    With experts on `ways` devices a step waits for the device that has most to do.
    """
    if ways <= 1 or experts % ways:
        return 1.0, 1.0
    drawn = max(1, min(tokens, _MOST_TOKENS))
    trials = max(40, min(400, _DRAWN_TOKENS // drawn))
    random = np.random.default_rng(0)
    by_experts = by_copies = 0.0
    for _ in range(trials):
        order = random.random((drawn, experts), dtype=np.float32)
        picks = np.argpartition(order, top_k - 1, axis=1)[:, :top_k]
        hits = np.bincount(picks.ravel(), minlength=experts).reshape(ways, -1)
        open_, copies = (hits > 0).sum(1), hits.sum(1)
        by_experts += open_.max() / open_.mean()
        by_copies += copies.max() / copies.mean()
    return float(by_experts / trials), float(by_copies / trials)
