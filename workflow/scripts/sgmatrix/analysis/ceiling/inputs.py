"""From a planned cell, and from what its server reported, to what a ceiling is computed of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sgmatrix.analysis.ceiling.capacity import Pool, kv_pool
from sgmatrix.analysis.ceiling.closed_loop import DEFAULT_CHUNK, Server
from sgmatrix.analysis.ceiling.decode import Speculation
from sgmatrix.analysis.ceiling.forward import Routing
from sgmatrix.analysis.ceiling.parallel import parallel_of
from sgmatrix.core.facts.formats import Format
from sgmatrix.core.facts.hardware import Device
from sgmatrix.core.facts.model import Precision, Shape

_KV_FORMATS: Mapping[str, Format] = {
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "fp4_e2m1": "nvfp4",
}

_ALL_MEMORY = 1.0
"""No server keeps more than its devices hold, where no flag says how much of it."""

_WHOLE_FORMATS: Mapping[str, Format] = {
    "fp8": "fp8",
    "mxfp8": "fp8",
    "modelopt_fp8": "fp8",
    "w8a8_fp8": "fp8",
    "w8a8_int8": "int8",
    "bitsandbytes": "int4",
    "modelopt_fp4": "nvfp4",
    "nvfp4_online": "nvfp4",
    "mxfp4": "mxfp4",
    "quark_mxfp4": "mxfp4",
}
"""Values of `--quantization` that quantise a bf16 checkpoint as it is loaded."""


_VERIFIED_UNSAID = {"NGRAM": 12, "DFLASH": 16, "DSPARK": 16}
_MOST_UNSAID = 8
"""Tokens that a step verifies where no flag says it: SGLang 0.5.23, `speculative_hook.py`, which
chooses 4 or, for Llama, 8."""


@dataclass(frozen=True)
class Reported:
    """What a running server said of itself; it wins over the formulas."""

    pool_tokens: int | None = None
    """`max_total_num_tokens`."""
    max_running: int | None = None
    """Of one replica, or of all groups of DP attention."""
    weight_bytes: float | None = None
    """On one device."""


def server_of(
    cell: Mapping[str, Any],
    model: Shape,
    device: Device,
    *,
    reported: Reported | None = None,
    distinct: float | None = None,
) -> Server:
    """Return a cell as the ceiling sees it.

    Args:
        cell: of `plan.json`: its `flags`, and `oea` where that is an axis.
        model: the shape of its checkpoint.
        device: what each of its devices can do.
        reported: by its server; None: it has not run.
        distinct: experts per layer and step that a probe counted at this batch size.
    """
    said = reported or Reported()
    flags: Mapping[str, Any] = cell["flags"]
    parallel = parallel_of(flags)
    shape = replace(model, precision=_precision(model.precision, flags))
    pool: Pool | None = None
    fraction = flags.get("mem_fraction_static")
    if said.pool_tokens is not None:
        groups = parallel.attention_groups  # each reports its own
        pool = Pool(None, said.pool_tokens * groups)
    else:
        share = fraction if isinstance(fraction, int | float) else _ALL_MEMORY
        pool = kv_pool(shape, device, parallel, share, weight_bytes=said.weight_bytes)
    if isinstance(cap := flags.get("max_total_tokens"), int):
        most = cap * parallel.attention_groups  # each group has a pool of its own
        pool = Pool(None, min(most, pool.tokens) if pool else most)
    asked = _number(flags, "max_running_requests")
    running = said.max_running if said.max_running is not None else asked
    settings = (cell.get("oea") or {}).get("settings") or {}
    free = settings.get("k0") if (cell.get("oea") or {}).get("on") else None
    return Server(
        model=shape,
        device=device,
        parallel=parallel,
        pool=pool,
        max_running=running,
        chunk=_number(flags, "chunked_prefill_size") or DEFAULT_CHUNK,
        routing=Routing(free_experts=free, distinct=distinct),
        speculation=_speculation(flags),
        mixed=bool(flags.get("enable_mixed_chunk")),
    )


def _number(flags: Mapping[str, Any], name: str) -> int | None:
    value = flags.get(name)
    whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if whole else None


def _precision(stored: Precision, flags: Mapping[str, Any]) -> Precision:
    """Return the formats of a checkpoint as the flags say that it is served."""
    kv = _KV_FORMATS.get(str(flags.get("kv_cache_dtype")))
    given = replace(stored, kv=kv) if kv is not None else stored
    whole = _WHOLE_FORMATS.get(str(flags.get("quantization")))
    if whole is None or stored.routed != "bf16" or stored.attention != "bf16":
        return given
    return replace(given, attention=whole, routed=whole, shared=whole, dense=whole)


def _speculation(flags: Mapping[str, Any]) -> Speculation | None:
    if not flags.get("speculative_algorithm"):
        return None
    drafts = _number(flags, "speculative_num_draft_tokens")
    drafts = drafts or _number(flags, "speculative_dflash_block_size")
    steps = _number(flags, "speculative_num_steps")
    unsaid = _VERIFIED_UNSAID.get(str(flags["speculative_algorithm"]).upper(), _MOST_UNSAID)
    tokens = (drafts - 1) if drafts else steps or unsaid - 1
    return Speculation(tokens) if tokens else None
