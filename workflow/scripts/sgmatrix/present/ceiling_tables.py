"""The tables of docs/ceiling.md: `python -m sgmatrix.present.ceiling_tables`.

Decode steps and whole load points of two studied cases from the shipped facts, and published
results beside their ceilings.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sgmatrix.analysis.ceiling.capacity import kv_pool
from sgmatrix.analysis.ceiling.closed_loop import Server, ceiling
from sgmatrix.analysis.ceiling.decode import decode_pass
from sgmatrix.analysis.ceiling.forward import Pass, Routing
from sgmatrix.analysis.ceiling.links import Tier
from sgmatrix.analysis.ceiling.parallel import Parallel
from sgmatrix.analysis.ceiling.published import published
from sgmatrix.analysis.ceiling.weights import (
    active_parameters,
    device_weight_bytes,
    kv_token_bytes,
    model_bytes,
    parameters,
)
from sgmatrix.core.facts.files import hardware_file, model_file, model_shape

CONFIG = Path("config")
_CONTEXT = 320.0
"""256 tokens in and half of 128 out."""
_K0 = 4


def _server(model: str, hardware: str, parallel: Parallel) -> Server:
    shape = model_shape(model_file(CONFIG / "models", model))
    return Server(shape, hardware_file(CONFIG / "hardware", hardware).device(), parallel)


def _step(server: Server, tier: Tier, batch: int, k0: int | None = None) -> Pass:
    return decode_pass(
        server.model,
        server.device,
        server.parallel,
        tier,
        batch=batch,
        context=_CONTEXT,
        routing=Routing(free_experts=k0),
    )


def study(server: Server, batches: Sequence[int]) -> Iterator[str]:
    """Yield a table of decode steps and load points, 256 tokens in and 128 out."""
    yield (
        "| concurrency | experts | hard ms | practical ms | memory / compute / link ms | "
        f"hard tok/s | practical tok/s | OEA k0 = {_K0} |"
    )
    yield "|" + "---|" * 8
    for batch in batches:
        hard, practical = (_step(server, tier, batch) for tier in ("hard", "practical"))
        less = 1 - _step(server, "practical", batch, _K0).seconds / practical.seconds
        rates = [
            ceiling(server, tier, concurrency=batch, input_len=256, output_len=128).output_tok_s
            for tier in ("hard", "practical")
        ]
        parts = (practical.memory_s, practical.compute_s, practical.link_s)
        yield (
            f"| {batch:,} | {practical.distinct_experts:.1f} | {1e3 * hard.seconds:.2f} "
            f"({hard.bound}) | {1e3 * practical.seconds:.2f} ({practical.bound}) | "
            f"{' / '.join(f'{1e3 * part:.2f}' for part in parts)} | "
            f"{rates[0]:,.0f} | {rates[1]:,.0f} | {-100 * less:.1f} % |"
        )


def sizes(servers: Mapping[str, Server]) -> Iterator[str]:
    """Yield a table of what the weights take and what is left for the KV cache."""
    fraction = 0.92
    yield (
        "| | parameters, 1e9 | active | weights GB | per device GiB | KV bytes per token "
        f"| KV tokens at {fraction} |"
    )
    yield "|" + "---|" * 7
    for name, one in servers.items():
        pool = kv_pool(one.model, one.device, one.parallel, fraction)
        yield (
            f"| {name} | {sum(parameters(one.model).values()) / 1e9:.1f} | "
            f"{active_parameters(one.model) / 1e9:.1f} | {model_bytes(one.model) / 1e9:.1f} | "
            f"{device_weight_bytes(one.model, one.parallel) / 2**30:.1f} | "
            f"{kv_token_bytes(one.model, one.parallel.attention_tp):,.0f} | "
            f"{pool.tokens if pool else 0:,} |"
        )


def reports() -> Iterator[str]:
    """Yield a table of published results: ceiling over result, which is at most 1."""
    yield "| published | its TPOT ms | of hard | of practical | source |"
    yield "|" + "---|" * 5
    for one in published(CONFIG):
        yield (
            f"| {one.what} | {one.tpot_ms:.2f} | {one.hard_ms / one.tpot_ms:.2f} | "
            f"{one.practical_ms / one.tpot_ms:.2f} | {one.source} |"
        )


def main() -> None:
    """Print all tables."""
    glm5 = _server("glm-5-nvfp4", "rtx-pro-6000-server", Parallel(tp=8))
    qwen3 = _server("qwen3-30b-a3b", "h200-sxm", Parallel())
    for title, lines in (
        ("GLM-5-NVFP4, TP8 on 8 RTX PRO 6000", study(glm5, (1, 2, 256, 512, 1024, 2048))),
        ("Qwen3-30B-A3B, one H200", study(qwen3, (1, 8, 16, 32, 64, 256, 1024))),
        ("Sizes", sizes({"GLM-5-NVFP4, TP8": glm5, "Qwen3-30B-A3B": qwen3})),
        ("Published decode results", reports()),
    ):
        sys.stdout.write(f"### {title}\n\n" + "\n".join(lines) + "\n\n")


if __name__ == "__main__":
    main()
