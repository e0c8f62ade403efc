"""The shape of a decoder model: what its bytes and its multiplications follow from."""

from __future__ import annotations

from dataclasses import dataclass, field

from sgmatrix.core.facts.formats import Format


@dataclass(frozen=True)
class Mla:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434)."""

    heads: int
    q_lora: int | None
    """Rank of the query projection; None: it is not factored."""
    kv_lora: int
    nope: int
    rope: int
    v: int


@dataclass(frozen=True)
class Gqa:
    """Grouped-query attention; as many KV heads as heads is multi-head attention."""

    heads: int
    kv_heads: int
    head_dim: int


@dataclass(frozen=True)
class Indexer:
    """DeepSeek sparse attention: a small index picks the `topk` tokens that are attended."""

    heads: int
    dim: int
    topk: int


@dataclass(frozen=True)
class Moe:
    """Routed and shared experts of a layer."""

    experts: int
    top_k: int
    inter: int
    """Inner width of a routed expert, which has gate, up and down projection."""
    shared: int
    shared_inter: int
    """Inner width of one shared expert."""
    first_dense: int
    """Layers at the beginning that have a dense feed-forward network instead."""


@dataclass(frozen=True)
class Precision:
    """The format of each part's weights, and of the KV cache."""

    attention: Format = "bf16"
    indexer: Format = "bf16"
    routed: Format = "bf16"
    shared: Format = "bf16"
    dense: Format = "bf16"
    router: Format = "bf16"
    embedding: Format = "bf16"
    lm_head: Format = "bf16"
    kv: Format = "bf16"
    index_kv: Format = "fp8"


@dataclass(frozen=True)
class Shape:
    """One model."""

    name: str
    hidden: int
    layers: int
    vocabulary: int
    dense_inter: int
    """Inner width of the dense feed-forward network."""
    attention: Mla | Gqa
    moe: Moe | None
    indexer: Indexer | None = None
    tied: bool = False
    """The output projection is the embedding."""
    precision: Precision = field(default_factory=Precision)

    @property
    def moe_layers(self) -> int:
        return self.layers - self.moe.first_dense if self.moe else 0

    @property
    def dense_layers(self) -> int:
        return self.layers - self.moe_layers
