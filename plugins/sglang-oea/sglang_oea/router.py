"""How a model's router ranks and weighs experts, read from SGLang's TopKConfig.

Notation  E routed experts, k experts per token, n rows (tokens) of a step.
Ranking   Without a bias: by the logits, of which each score is a rising function, so equal
          scores after rounding still have an order. With a bias: by score + bias. Experts
          outside the allowed groups rank below all others.
Not here  the order of the engine's own top-k: fused kernels give columns in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

SCORINGS = ("softmax", "sigmoid", "sqrtsoftplus")


@dataclass(frozen=True)
class Router:
    """What a core must know of a layer's router; layers with equal ones share a core.

    Attributes:
        experts: E, without shared ones.
        top_k: k, columns that the router chose itself.
        scoring: softmax, sigmoid or sqrtsoftplus of the logits.
        biased: a correction bias is added for ranking, not for weighing.
        groups: groups of consecutive experts; 1 without groups.
        top_groups: groups that a token may choose from.
        renormalize: a token's weights sum to one, before scaling.
        shared: columns after the k for shared experts; never touched.
    """

    experts: int
    top_k: int
    scoring: str = "softmax"
    biased: bool = False
    groups: int = 1
    top_groups: int = 1
    renormalize: bool = True
    shared: int = 0

    @property
    def kind(self) -> str:
        """In words, for proofs: `sigmoid+bias, 4 of 8 groups`."""
        groups = f", {self.top_groups} of {self.groups} groups" if self.grouped else ""
        return self.scoring + ("+bias" if self.biased else "") + groups

    @property
    def grouped(self) -> bool:
        """Whether groups take experts away from a token."""
        return self.top_groups < self.groups


def router_of(config: Any, topk_ids: torch.Tensor, router_logits: torch.Tensor) -> Router:
    """Return the router of a TopKConfig.

    Args:
        config: SGLang's TopKConfig.
        topk_ids: [n, columns]; tells whether shared columns are there already.
        router_logits: [n, E].

    Raises:
        ValueError: in words, a router whose ranking the plug-in cannot know.
    """
    if config.custom_routing_function is not None:
        raise ValueError("a custom routing function, whose ranking scores are not known")
    slots = getattr(config, "num_shared_topk_slots", None)
    if slots is None:  # its name before 0.5.23
        slots = getattr(config, "num_fused_shared_experts", 0)
    columns = topk_ids.shape[1]
    # Some paths append the shared columns after the hook: then they are not here yet.
    shared = slots if columns == config.top_k else 0
    biased = config.correction_bias is not None
    grouped = bool(config.use_grouped_topk)
    # The biased grouped router of SGLang scores with sigmoid, whatever the config says.
    scoring = "sigmoid" if grouped and biased else config.scoring_func
    if scoring not in SCORINGS:
        raise ValueError(f"scoring function {scoring}")
    groups = (config.num_expert_group or 1) if grouped else 1
    return Router(
        experts=router_logits.shape[1],
        top_k=columns - shared,
        scoring=scoring,
        biased=biased,
        groups=groups,
        top_groups=(config.topk_group or 1) if grouped else 1,
        renormalize=bool(config.renormalize),
        shared=shared,
    )
