"""Arrow schemas of the datasets, one each, explicit: column, type, unit, meaning.

A null means that nothing was measured or that the thing does not exist for this row; a
failed request has no latencies. Units are in the names and in the field metadata.
Not here: how rows are made (`load`, `dataset`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

REQUESTS_VERSION = 1
TELEMETRY_VERSION = 1
POINTS_VERSION = 3
REFERENCES_VERSION = 1

_TEXT, _I32, _F64, _F32, _BOOL = pa.string(), pa.int32(), pa.float64(), pa.float32(), pa.bool_()
_I64 = pa.int64()
_TIME = pa.timestamp("us", tz="UTC")

QUANTILES = (50, 90, 95, 99)
LATENCIES = ("ttft", "tpot", "itl", "e2e")


def field(name: str, kind: pa.DataType, meaning: str, *, null: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable=null, metadata={"meaning": meaning})


_IDENTITY = [
    field("campaign", _TEXT, "name of the campaign", null=False),
    field("cell", _TEXT, "cell id", null=False),
    field("launch", _TEXT, "launch of the cell, the unit of repetition", null=False),
    field("attempt", _I32, "execution of the launch; null: not yet run"),
    field("load_id", _TEXT, "load point, e.g. c0008-i64-o64-random-ids", null=False),
]

REQUESTS = pa.schema(
    [
        *_IDENTITY,
        field("request", _I32, "position in the load, from 0", null=False),
        field("ok", _BOOL, "answered whole and without error", null=False),
        field("error", _TEXT, "what went wrong; null where ok"),
        field("input_tokens", _I32, "prompt tokens sent"),
        field("requested_output_tokens", _I32, "output tokens asked for"),
        field("output_tokens", _I32, "output tokens received; null where not ok"),
        field("ttft_ms", _F64, "time to first token; null where not ok"),
        field("tpot_ms", _F64, "(E2E - TTFT) / (output tokens - 1); null below two tokens"),
        field("e2e_ms", _F64, "send to last token; null where not ok"),
        field(
            "itl_ms",
            pa.list_(pa.field("element", _F32, nullable=False)),
            "times between successive tokens",
        ),
    ]
)


def _latency_fields() -> list[pa.Field]:
    fields = []
    for latency in LATENCIES:
        fields.append(field(f"{latency}_ms_mean", _F64, f"mean {latency.upper()} of ok requests"))
        fields += [
            field(f"{latency}_ms_p{q}", _F64, f"{q}th percentile, linear interpolation")
            for q in QUANTILES
        ]
    return fields


_POINT_FIELDS = [
    field("campaign", _TEXT, "name of the campaign", null=False),
    field("study", _TEXT, "what campaigns belong to", null=False),
    *_IDENTITY[1:],
    field("cell_key", _TEXT, "sha256 of what makes the server", null=False),
    field("point_key", _TEXT, "sha256 of cell key, load, client and harness", null=False),
    field("current", _BOOL, "of the attempt that counts; false for superseded ones", null=False),
    field("status", _TEXT, "ok | failed | skipped | not_run", null=False),
    field("reason", _TEXT, "reason class where failed or skipped"),
    field("detail", _TEXT, "root line or first error"),
    field("validity", _TEXT, "'valid' or the flags, comma-separated; null where nothing measured"),
    field("validity_detail", _TEXT, "why each flag was given; null where valid"),
    field("concurrency", _I32, "closed loop: requests in flight, asked; null: open loop"),
    field("request_rate", _F64, "open loop: requests per second, asked; null: closed loop"),
    field("max_concurrency", _I32, "open loop: requests in flight at the most"),
    field("input_len", _I32, "prompt tokens per request, asked", null=False),
    field("output_len", _I32, "output tokens per request, asked", null=False),
    field("dataset", _TEXT, "kind of prompts", null=False),
    field("asked", _I32, "requests offered"),
    field("completed", _I32, "requests answered whole"),
    field("failed", _I32, "asked - completed"),
    field("started_at", _TIME, "start of the load client"),
    field("duration_s", _F64, "measured window, as the client defines it"),
    field("output_tok_s", _F64, "output tokens of ok requests / duration"),
    field("total_tok_s", _F64, "input and output tokens of ok requests / duration"),
    field("request_s", _F64, "ok requests / duration"),
    *_latency_fields(),
    field("steady_output_tok_s", _F64, "output throughput while 95 % of the concurrency ran"),
    field("steady_share", _F64, "part of the window in which it ran"),
    field("peak_output_tok_s", _F64, "highest rate between two decode lines of the server"),
    field("tok_s_per_user", _F64, "1,000 / mean TPOT"),
    field("output_tok_s_per_gpu", _F64, "output throughput / GPUs; null on the CPU engine"),
    field("scaling_efficiency", _F64, "throughput / (concurrency x throughput at concurrency 1)"),
    field("slo", _TEXT, "objective that held when it was measured, e.g. ttft_ms <= 200"),
    field("goodput_request_s", _F64, "requests that kept the objective / duration"),
    field("good_share", _F64, "requests that kept the objective / requests offered"),
    field("concurrency_mean", _F64, "Little's law: sum of E2E / duration"),
    field("cached_share", _F64, "prompt tokens served from the prefix cache, by the server"),
    field("running_mean", _F64, "mean requests in a decode batch, by the server"),
    field("running_max", _I32, "most requests in a decode batch, by the server"),
    field("queued_max", _I32, "most requests that waited for a place, by the server"),
    field("retracted", _I32, "running requests thrown out of a full KV pool"),
    field("token_usage_max", _F64, "largest share of the KV pool in use"),
    field("graph_share", _F64, "share of the decode lines that ran from a captured graph"),
    field("server_tpot_ms", _F64, "mean time of a decode step, by the server"),
    field("client_cpu_cores", _F64, "CPUs that the load client used"),
    field("client_delay_share", _F64, "time that the client's threads waited for a CPU / time"),
    field("foreign_cpu_share", _F64, "CPUs used by neither engine nor harness / CPUs"),
    field("power_w_mean", _F64, "mean GPU power, all GPUs of the cell"),
    field("power_idle_w", _F64, "GPU power before the server took their memory"),
    field("energy_j_per_output_tok", _F64, "GPU energy per output token"),
    field("ceiling_hard_tok_s", _F64, "theoretical bound, hard tier"),
    field("ceiling_practical_tok_s", _F64, "theoretical bound, practical tier"),
    field("ceiling_hard_tpot_ms", _F64, "TPOT of decode steps alone, hard tier"),
    field("ceiling_practical_tpot_ms", _F64, "TPOT, prompts of others included, practical tier"),
    field("ceiling_bound", _TEXT, "memory | compute | link: what binds it in the practical tier"),
    field("ceiling_distinct_experts", _F64, "experts per layer and step that it is computed with"),
    field("ceiling_kv_tokens", _I64, "tokens in the KV pool"),
    field("ceiling_running", _F64, "requests that can be decoded at once"),
    field("hard_ratio", _F64, "output throughput / hard ceiling"),
    field("practical_ratio", _F64, "output throughput / practical ceiling; may be above 1"),
    field("gpus", _I32, "GPUs of the cell; 0 on the CPU engine"),
    field("engine", _TEXT, "named installation", null=False),
    field("engine_version", _TEXT, "version that the running server reported"),
    field("client", _TEXT, "load client and its version"),
    field("seed", _I64, "seed of the load"),
    field("harness", _I32, "harness version that measured"),
]

# Results of other tools. A column that is also one of `points` means the same there.
REFERENCES = pa.schema(
    [
        field("source_file", _TEXT, "file as it was named", null=False),
        field("source_line", _I32, "line where it begins, or the list it is in", null=False),
        field("source_item", _I32, "which result of the file it is, from 1", null=False),
        field("tool", _TEXT, "sglang | sglang fork | vllm | genai-bench, by its keys", null=False),
        field("form", _TEXT, "which of the tool's sets of keys, by its keys", null=False),
        field("engine_version", _TEXT, "version that the server reported"),
        field("backend", _TEXT, "protocol that the tool says it spoke"),
        field("model", _TEXT, "model, as the tool names it"),
        field("dataset", _TEXT, "kind of prompts, as the tool names it"),
        field("status", _TEXT, "ok | failed", null=False),
        field("reason", _TEXT, "reason class where failed"),
        field("validity", _TEXT, "'valid' or the flags, comma-separated; null: nothing measured"),
        field("validity_detail", _TEXT, "why each flag was given; null where valid"),
        field("concurrency", _I32, "closed loop: requests in flight, asked; null: not said"),
        field("request_rate", _F64, "open loop: requests per second, asked; null: see the text"),
        field("request_rate_text", _TEXT, "the rate as it was said: a number, inf, trace"),
        field("max_concurrency", _I32, "open loop: requests in flight at the most"),
        field("input_len", _I32, "prompt tokens per request, asked"),
        field("output_len", _I32, "output tokens per request, asked"),
        field("asked", _I32, "requests offered; null: not said"),
        field("completed", _I32, "requests that the tool counts as answered", null=False),
        field("failed", _I32, "asked - completed"),
        field("input_tokens", _I64, "prompt tokens of completed requests"),
        field("output_tokens", _I64, "output tokens of completed requests, as the server counted"),
        field("output_tokens_retokenized", _I64, "the same, counted again from the text"),
        field("duration_s", _F64, "measured window, as the tool defines it"),
        field("output_tok_s", _F64, "output tokens / duration, as the tool defines it"),
        field("total_tok_s", _F64, "input and output tokens / duration, as the tool defines it"),
        field("request_s", _F64, "completed requests / duration"),
        *_latency_fields(),
        field("cached_share", _F64, "prompt tokens served from the prefix cache"),
        field("concurrency_mean", _F64, "sum of E2E / duration, as the tool computed it"),
        field("tokens_per_chunk", _F64, "mean ITL / mean TPOT; above 1 an ITL is no token's"),
        field("streamed", _BOOL, "whether answers came token by token; null: not known"),
        field("raw", _TEXT, "what has no column here, strict JSON, secrets masked", null=False),
    ]
)


TELEMETRY = pa.schema(
    [
        *_IDENTITY[:4],
        field("phase", _TEXT, "start | warmup | point | between | teardown", null=False),
        field("load_id", _TEXT, "load point that was measured then"),
        field("time", _TIME, "when it was read", null=False),
        field("t_s", _F64, "seconds since the start of the server; negative before", null=False),
        field("source", _TEXT, "host | engine | harness | gpu | server | sampler", null=False),
        field("device", pa.int16(), "index of the GPU, or data-parallel rank of the server"),
        field("name", _TEXT, "what it is, with its unit", null=False),
        field("value", _F64, "", null=False),
    ]
)


def points_schema(axes: Iterable[str]) -> pa.Schema:
    """Return the schema of `points`, with one text column per axis, sorted by name."""
    extra = [
        field(f"axis_{axis}", _TEXT, "value of the axis; null: not set") for axis in sorted(axes)
    ]
    return pa.schema([*_POINT_FIELDS, *extra])


def with_metadata(
    schema: pa.Schema, dataset: str, version: int, provenance: Mapping[str, Any]
) -> pa.Schema:
    """Return the schema with its name, version and provenance as key-value metadata."""
    return schema.with_metadata(
        {
            "sgmatrix.schema": f"{dataset}/{version}",
            "sgmatrix.provenance": json.dumps(dict(provenance), sort_keys=True),
        }
    )
