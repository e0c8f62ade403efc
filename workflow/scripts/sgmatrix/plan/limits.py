"""Cells that cannot be, known from the model's shape before a server spends minutes to say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sgmatrix.plan.closed import AxisValue
from sgmatrix.plan.load_parts import Load
from sgmatrix.plan.model import ModelFacts


def _size(flags: Mapping[str, AxisValue], name: str) -> int:
    value = flags.get(name, 1)
    return value if isinstance(value, int) and not isinstance(value, bool) else 1


def impossibilities(flags: Mapping[str, AxisValue], model: ModelFacts, load: Load) -> Iterator[str]:
    """Yield why a cell cannot be served; nothing is said of what the model's files leave open.

    Args:
        flags: server flags of the cell, in Python's spelling.
        model: the model's facts.
        load: what is offered to it.
    """
    tp, dp, ep = (_size(flags, f"{name}_size") for name in ("tp", "dp", "ep"))
    if flags.get("enable_dp_attention") is True:
        if tp % dp:
            yield f"tp_size {tp} is not divisible by dp_size {dp}, as DP attention needs"
            return
        shards = tp // dp
    else:
        shards = tp
    if model.heads is not None and model.heads % shards:
        yield f"{model.heads} attention heads of {model.name} are not divisible by {shards} shards"
    if model.experts is not None and model.experts % ep:
        yield f"{model.experts} experts of {model.name} are not divisible by ep_size {ep}"
    if tp % ep:
        yield f"tp_size {tp} is not divisible by ep_size {ep}"
    asked = flags.get("context_length")
    limit = asked if isinstance(asked, int) else model.context_length
    for one in load.workloads():
        if limit is not None and one.input_len + one.output_len > limit:
            yield (
                f"load.input_len {one.input_len} + load.output_len {one.output_len} is over the "
                f"context length {limit}"
            )
