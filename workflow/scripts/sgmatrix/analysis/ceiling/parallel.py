"""How a server spreads a model over devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Parallel:
    """SGLang's parallel sizes.

    `ep` splits the experts over the same devices as `tp`. `dp` without DP attention is that many
    whole servers; with it, attention is split `tp / dp` ways and each group holds its own tokens.
    """

    tp: int = 1
    ep: int = 1
    pp: int = 1
    dp: int = 1
    dp_attention: bool = False
    all_to_all: bool = False
    """Expert tokens travel by all-to-all (`moe_a2a_backend`), not by all-gather."""

    @property
    def replicas(self) -> int:
        """Whole servers that share the load."""
        return 1 if self.dp_attention else self.dp

    @property
    def devices(self) -> int:
        return self.tp * self.pp * self.replicas

    @property
    def attention_tp(self) -> int:
        """Devices that one attention layer is split over."""
        return max(1, self.tp // self.dp) if self.dp_attention else self.tp

    @property
    def attention_groups(self) -> int:
        """Groups of devices that each hold their own tokens in attention."""
        return self.dp if self.dp_attention else 1


def parallel_of(flags: Mapping[str, Any]) -> Parallel:
    """Return the layout that server flags describe, by SGLang's names with _ for -."""

    def size(name: str) -> int:
        value = flags.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else 1

    return Parallel(
        tp=size("tp_size"),
        ep=size("ep_size"),
        pp=size("pp_size"),
        dp=size("dp_size"),
        dp_attention=bool(flags.get("enable_dp_attention")),
        all_to_all=str(flags.get("moe_a2a_backend") or "none") != "none",
    )
