"""What a measured point is limited by, from its own numbers beside its ceilings.

Shares  of each roof: the time that bytes, FLOP or messages take at the peak / measured TPOT.
        Unexplained: 1 - TPOT of the practical tier / measured TPOT.
Words follow numbers, by the thresholds of `RULES`, the first that holds.
Not here  the ceilings (`analysis.ceiling`), the text of a page (`present`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Limit = Literal["kv_pool", "host", "memory", "compute", "link", "kernels"]

RULES: Mapping[str, tuple[float, str]] = {
    "kv_pool": (0.95, "share of the KV pool in use from which it limits, or any retraction"),
    "host": (0.5, "share of TPOT that no roof explains, from which it is host overhead"),
    "roof": (0.6, "share of a roof from which a step is at it"),
    "power": (0.5, "share of the power limit below which the GPUs wait"),
}


@dataclass(frozen=True)
class RootCause:
    """Numbers of one point, and the word for them."""

    limit: Limit
    memory_share: float
    compute_share: float | None
    """None: what the device can multiply is not known."""
    link_share: float | None
    """None: there is no link, or nothing is sent."""
    unexplained_share: float
    unexplained_ms: float
    """Per output token; 0 where the practical tier is slower than what was measured."""
    tokens_per_expert: float | None
    kv_share: float | None
    power_share: float | None

    @property
    def waits(self) -> bool:
        """The GPUs draw less than half of their limit."""
        return self.power_share is not None and self.power_share < RULES["power"][0]


def root_cause(
    point: Mapping[str, Any], ceiling: Mapping[str, Any], power_limit_w: float | None
) -> RootCause | None:
    """Return what limits a point; None where TPOT or ceiling is missing.

    Args:
        point: row of `points`.
        ceiling: row of `ceilings` for it.
        power_limit_w: of all GPUs of the cell together; None: not known.
    """
    tpot = point.get("tpot_ms_mean")
    if not tpot or ceiling.get("why_not") is not None:
        return None
    explained = ceiling["practical_tpot_with_prefill_ms"]
    shares: dict[Limit, float] = {
        "memory": ceiling["hard_memory_ms"] / tpot,
        "compute": ceiling["hard_compute_ms"] / tpot,
        "link": ceiling["hard_link_ms"] / tpot,
    }
    left = max(0.0, tpot - explained)
    power = point.get("power_w_mean")
    usage = point.get("token_usage_max")
    return RootCause(
        limit=_limit(shares, left / tpot, usage, point.get("retracted") or 0),
        memory_share=shares["memory"],
        compute_share=shares["compute"] or None,
        link_share=shares["link"] or None,
        unexplained_share=left / tpot,
        unexplained_ms=left,
        tokens_per_expert=ceiling.get("tokens_per_expert"),
        kv_share=usage,
        power_share=power / power_limit_w if power and power_limit_w else None,
    )


def _limit(
    shares: Mapping[Limit, float], unexplained: float, usage: float | None, retracted: int
) -> Limit:
    if retracted > 0 or (usage is not None and usage >= RULES["kv_pool"][0]):
        return "kv_pool"
    if unexplained >= RULES["host"][0]:
        return "host"
    largest = max(shares, key=lambda name: shares[name])
    return largest if shares[largest] >= RULES["roof"][0] else "kernels"
