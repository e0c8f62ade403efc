"""Arrow schema of `ceilings`: what physics allows each point that was planned or measured."""

from __future__ import annotations

import pyarrow as pa

from sgmatrix.core.schemas import field, nullable

CEILINGS_VERSION = 1

STEP_PARTS = (
    "attention",
    "attention_core",
    "indexer",
    "experts",
    "shared",
    "router",
    "dense",
    "lm_head",
)
"""Parts of a decode step, as `analysis.ceiling.forward` names them."""

_TEXT, _I32, _I64, _F64 = pa.string(), pa.int32(), pa.int64(), pa.float64()

_ceiling = nullable("no ceiling, or no such part: see `why_not`")

CEILINGS = pa.schema(
    [
        field("campaign", _TEXT, "name of the campaign", null=False),
        field("cell", _TEXT, "cell id", null=False),
        field("launch", _TEXT, "launch of the cell", null=False),
        field("attempt", _I32, "execution of the launch", null="not yet run"),
        field("load_id", _TEXT, "load point", null=False),
        field("why_not", _TEXT, "why there is no ceiling", null="there is one"),
        _ceiling("hard_tok_s", _F64, "output throughput, hard tier"),
        _ceiling("practical_tok_s", _F64, "output throughput, practical tier"),
        _ceiling("impossible_tok_s", _F64, "hard tier, were all tokens to open the same experts"),
        _ceiling("hard_tpot_ms", _F64, "decode alone, hard tier"),
        _ceiling("practical_tpot_ms", _F64, "decode alone, practical tier"),
        _ceiling("hard_tpot_with_prefill_ms", _F64, "TPOT of a closed loop, hard tier"),
        _ceiling("practical_tpot_with_prefill_ms", _F64, "TPOT of a closed loop, practical tier"),
        _ceiling("hard_bound", _TEXT, "memory | compute | link: what binds the decode step"),
        _ceiling("practical_bound", _TEXT, "the same in the practical tier"),
        _ceiling("running", _F64, "requests decoded at once: load, KV pool and cap of the server"),
        _ceiling("kv_tokens", _I64, "tokens in the KV pool of one replica"),
        _ceiling("kv_source", _TEXT, "server | formula"),
        _ceiling("weight_bytes", _F64, "weights on one device"),
        _ceiling("weight_source", _TEXT, "server | formula"),
        field("distinct_experts", _F64, "per layer and decode step", null="no routed experts"),
        field("distinct_source", _TEXT, "probe | uniform", null="no routed experts"),
        field(
            "tokens_per_expert",
            _F64,
            "routed copies in a decode step / distinct experts",
            null="no routed experts",
        ),
        _ceiling("hard_memory_ms", _F64, "bytes of a decode step / peak memory rate"),
        _ceiling("hard_compute_ms", _F64, "FLOP of a decode step / peak compute rate"),
        _ceiling("hard_link_ms", _F64, "collectives of a decode step at the peak link rate"),
        *(
            _ceiling(f"step_{part}_ms", _F64, "its part of a decode step, practical tier")
            for part in STEP_PARTS
        ),
        _ceiling("step_link_ms", _F64, "collectives of a decode step, practical tier"),
        _ceiling("device", _TEXT, "what the ceiling was computed for"),
    ]
)
