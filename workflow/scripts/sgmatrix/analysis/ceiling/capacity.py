"""How many cached tokens, and so how many requests, fit beside the weights.

Source  SGLang: weights and KV pool together take `mem_fraction_static` of the memory that is free
        before loading.
"""

from __future__ import annotations

from dataclasses import dataclass

from sgmatrix.analysis.ceiling.parallel import Parallel
from sgmatrix.analysis.ceiling.weights import device_weight_bytes, kv_token_bytes
from sgmatrix.core.facts.hardware import Device
from sgmatrix.core.facts.model import Shape

CONTEXT_BYTES = 1.7e9
"""What driver and runtime take of a GPU before a model is loaded; seen on an RTX PRO 6000."""


@dataclass(frozen=True)
class Pool:
    """The KV pool of one server."""

    device_bytes: float | None
    """On one device; negative: the weights do not fit. None: told by the server in tokens."""
    tokens: int
    """Of the whole server, over all groups of DP attention."""

    def requests(self, input_len: float, output_len: float) -> float:
        """Return how many requests fit that have, in the mean, half of their output."""
        return self.tokens / (input_len + output_len / 2)


def kv_pool(
    model: Shape,
    device: Device,
    parallel: Parallel,
    mem_fraction: float,
    *,
    weight_bytes: float | None = None,
) -> Pool | None:
    """Return the pool that a memory fraction leaves; None where the memory is not known.

    Args:
        model: its shape.
        device: with its memory.
        parallel: how the model is spread.
        mem_fraction: `mem_fraction_static`.
        weight_bytes: on one device, as the server reports them; None: by the shape.
    """
    if device.memory_bytes is None:
        return None
    weights = device_weight_bytes(model, parallel) if weight_bytes is None else weight_bytes
    free = (device.memory_bytes - CONTEXT_BYTES) * mem_fraction - weights
    each = kv_token_bytes(model, parallel.attention_tp) / parallel.pp
    return Pool(free, max(0, int(free / each)) * parallel.attention_groups)
