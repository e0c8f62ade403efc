"""Arrow schemas of the datasets, one each, explicit: column, type, unit, meaning.

A null means that nothing was measured or that the thing does not exist for this row; a
failed request has no latencies. Units are in the names and in the field metadata.
Not here: how rows are made (`load`, `dataset`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal

import pyarrow as pa

REQUESTS_VERSION = 1
TELEMETRY_VERSION = 1
POINTS_VERSION = 3

_TEXT, _I32, _F64, _F32, _BOOL = pa.string(), pa.int32(), pa.float64(), pa.float32(), pa.bool_()
_I64 = pa.int64()
_TIME = pa.timestamp("us", tz="UTC")

QUANTILES = (50, 90, 95, 99)
LATENCIES = ("ttft", "tpot", "itl", "e2e")


def field(name: str, kind: pa.DataType, meaning: str, *, null: str | Literal[False]) -> pa.Field:
    """Return a column.

    Args:
        name: with its unit.
        kind: type.
        meaning: what it says.
        null: what a null means; False: it never is null.
    """
    told = {"meaning": meaning} if null is False else {"meaning": meaning, "null": null}
    return pa.field(name, kind, nullable=null is not False, metadata=told)


Column = Callable[[str, pa.DataType, str], pa.Field]


def nullable(null: str) -> Column:
    """Return a maker of columns in which a null means that."""
    return partial(field, null=null)


_measured = nullable("failed, skipped or not run")
_server = nullable("no such line in the server's log")
_gpu = nullable("no GPU, or its power was not read")
_ceiling = nullable("no ceiling: see `why_not` of `ceilings`")


_IDENTITY = [
    field("campaign", _TEXT, "name of the campaign", null=False),
    field("cell", _TEXT, "cell id", null=False),
    field("launch", _TEXT, "launch of the cell, the unit of repetition", null=False),
    field("attempt", _I32, "execution of the launch", null="not yet run"),
    field("load_id", _TEXT, "load point, e.g. c0008-i64-o64-random-ids", null=False),
]

REQUESTS = pa.schema(
    [
        *_IDENTITY,
        field("request", _I32, "position in the load, from 0", null=False),
        field("ok", _BOOL, "answered whole and without error", null=False),
        field("error", _TEXT, "what went wrong", null="the request is ok"),
        field("input_tokens", _I32, "prompt tokens sent", null="not counted"),
        field("requested_output_tokens", _I32, "output tokens asked for", null="not told"),
        field("output_tokens", _I32, "output tokens received", null="the request failed"),
        field("ttft_ms", _F64, "time to first token", null="the request failed"),
        field(
            "tpot_ms",
            _F64,
            "(E2E - TTFT) / (output tokens - 1)",
            null="failed, or below two tokens",
        ),
        field("e2e_ms", _F64, "send to last token", null="the request failed"),
        field(
            "itl_ms",
            pa.list_(pa.field("element", _F32, nullable=False)),
            "times between successive tokens",
            null="the request failed",
        ),
    ]
)


def latency_fields(column: Column) -> list[pa.Field]:
    """Return the columns of the latencies, made by `column`."""
    fields = []
    for latency in LATENCIES:
        fields.append(column(f"{latency}_ms_mean", _F64, f"mean {latency.upper()} of ok requests"))
        fields += [
            column(f"{latency}_ms_p{q}", _F64, f"{q}th percentile, linear interpolation")
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
    field("reason", _TEXT, "reason class where failed or skipped", null="ok or not run"),
    field("detail", _TEXT, "root line or first error", null="nothing to say"),
    field("validity", _TEXT, "'valid' or the flags, comma-separated", null="nothing measured"),
    field(
        "validity_detail", _TEXT, "why each flag was given", null="valid, or nothing was measured"
    ),
    field("concurrency", _I32, "closed loop: requests in flight, asked", null="open loop"),
    field("request_rate", _F64, "open loop: requests per second, asked", null="closed loop"),
    field(
        "max_concurrency",
        _I32,
        "open loop: requests in flight at the most",
        null="no cap, or closed loop",
    ),
    field("input_len", _I32, "prompt tokens per request, asked", null=False),
    field("output_len", _I32, "output tokens per request, asked", null=False),
    field("dataset", _TEXT, "kind of prompts", null=False),
    field("asked", _I32, "requests offered", null="skipped or not run"),
    _measured("completed", _I32, "requests answered whole"),
    _measured("failed", _I32, "asked - completed"),
    field("started_at", _TIME, "start of the load client", null="skipped or not run"),
    _measured("duration_s", _F64, "measured window, as the client defines it"),
    _measured("output_tok_s", _F64, "output tokens of ok requests / duration"),
    _measured("total_tok_s", _F64, "input and output tokens of ok requests / duration"),
    _measured("request_s", _F64, "ok requests / duration"),
    *latency_fields(_measured),
    field(
        "steady_output_tok_s",
        _F64,
        "output throughput while 95 % of the concurrency ran",
        null="the concurrency was never steady",
    ),
    field(
        "steady_share",
        _F64,
        "part of the window in which it ran",
        null="open loop, or not measured",
    ),
    _server("peak_output_tok_s", _F64, "highest rate between two decode lines of the server"),
    _measured("tok_s_per_user", _F64, "1,000 / mean TPOT"),
    field(
        "output_tok_s_per_gpu",
        _F64,
        "output throughput / GPUs",
        null="the CPU engine, or not measured",
    ),
    field(
        "scaling_efficiency",
        _F64,
        "throughput / (concurrency x throughput at concurrency 1)",
        null="no trusted concurrency 1 beside it",
    ),
    field(
        "slo",
        _TEXT,
        "objective that held when it was measured, e.g. ttft_ms <= 200",
        null="no objective was set",
    ),
    field(
        "goodput_request_s",
        _F64,
        "requests that kept the objective / duration",
        null="no objective, or not measured",
    ),
    field(
        "good_share",
        _F64,
        "requests that kept the objective / requests offered",
        null="no objective, or not measured",
    ),
    _measured("concurrency_mean", _F64, "Little's law: sum of E2E / duration"),
    field(
        "cached_share",
        _F64,
        "prompt tokens served from the prefix cache, by the server",
        null="the server did not tell",
    ),
    _server("running_mean", _F64, "mean requests in a decode batch, by the server"),
    _server("running_max", _I32, "most requests in a decode batch, by the server"),
    _server("queued_max", _I32, "most requests that waited for a place, by the server"),
    _server("retracted", _I32, "running requests thrown out of a full KV pool"),
    _server("token_usage_max", _F64, "largest share of the KV pool in use"),
    _server("graph_share", _F64, "share of the decode lines that ran from a captured graph"),
    _server("server_tpot_ms", _F64, "mean time of a decode step, by the server"),
    _measured("client_cpu_cores", _F64, "CPUs that the load client used"),
    _measured("client_delay_share", _F64, "time that the client's threads waited for a CPU / time"),
    _measured("foreign_cpu_share", _F64, "CPUs used by neither engine nor harness / CPUs"),
    _gpu("power_w_mean", _F64, "mean GPU power, all GPUs of the cell"),
    _gpu("power_idle_w", _F64, "GPU power before the server took their memory"),
    _gpu("energy_j_per_output_tok", _F64, "GPU energy per output token"),
    _ceiling("ceiling_hard_tok_s", _F64, "theoretical bound, hard tier"),
    _ceiling("ceiling_practical_tok_s", _F64, "theoretical bound, practical tier"),
    _ceiling("ceiling_hard_tpot_ms", _F64, "TPOT of decode steps alone, hard tier"),
    _ceiling("ceiling_practical_tpot_ms", _F64, "TPOT, prompts of others included, practical tier"),
    _ceiling(
        "ceiling_bound", _TEXT, "memory | compute | link: what binds it in the practical tier"
    ),
    _ceiling(
        "ceiling_distinct_experts", _F64, "experts per layer and step that it is computed with"
    ),
    _ceiling("ceiling_kv_tokens", _I64, "tokens in the KV pool"),
    _ceiling("ceiling_running", _F64, "requests that can be decoded at once"),
    _ceiling("hard_ratio", _F64, "output throughput / hard ceiling"),
    _ceiling("practical_ratio", _F64, "output throughput / practical ceiling; may be above 1"),
    field("gpus", _I32, "GPUs of the cell; 0 on the CPU engine", null="not told by an old record"),
    field("engine", _TEXT, "named installation", null=False),
    field(
        "engine_version",
        _TEXT,
        "version that the running server reported",
        null="no server told it",
    ),
    field("client", _TEXT, "load client and its version", null="not run"),
    field("seed", _I64, "seed of the load", null="not told by an old record"),
    field("harness", _I32, "harness version that measured", null="not run"),
]

TELEMETRY = pa.schema(
    [
        *_IDENTITY[:4],
        field("phase", _TEXT, "start | warmup | point | between | teardown", null=False),
        field("load_id", _TEXT, "load point that was measured then", null="none was"),
        field("time", _TIME, "when it was read", null=False),
        field("t_s", _F64, "seconds since the start of the server; negative before", null=False),
        field("source", _TEXT, "host | engine | harness | gpu | server | sampler", null=False),
        field(
            "device",
            pa.int16(),
            "index of the GPU, or data-parallel rank of the server",
            null="the value is of the whole machine",
        ),
        field("name", _TEXT, "what it is, with its unit", null=False),
        field("value", _F64, "the value, in the unit of its name", null=False),
    ]
)


def axis_fields(axes: Iterable[str]) -> list[pa.Field]:
    """Return one text column per axis, sorted by name."""
    axis = nullable("the axis is not set")
    return [axis(f"axis_{name}", _TEXT, "value of the axis") for name in sorted(axes)]


def points_schema(axes: Iterable[str]) -> pa.Schema:
    """Return the schema of `points`, with one text column per axis, sorted by name."""
    return pa.schema([*_POINT_FIELDS, *axis_fields(axes)])


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
