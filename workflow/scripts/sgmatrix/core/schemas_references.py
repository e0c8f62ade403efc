"""Arrow schema of `references`: results of other tools, beside our own and never mixed in."""

from __future__ import annotations

import pyarrow as pa

from sgmatrix.core.schemas import field, latency_fields, nullable

REFERENCES_VERSION = 1

_TEXT, _I32, _I64, _F64, _BOOL = pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_()

_said = nullable("the tool does not say")

# Results of other tools. A column that is also one of `points` means the same there.
REFERENCES = pa.schema(
    [
        field("source_file", _TEXT, "file as it was named", null=False),
        field("source_line", _I32, "line where it begins, or the list it is in", null=False),
        field("source_item", _I32, "which result of the file it is, from 1", null=False),
        field("tool", _TEXT, "sglang | sglang fork | vllm | genai-bench, by its keys", null=False),
        field("form", _TEXT, "which of the tool's sets of keys, by its keys", null=False),
        _said("engine_version", _TEXT, "version that the server reported"),
        _said("backend", _TEXT, "protocol that the tool says it spoke"),
        _said("model", _TEXT, "model, as the tool names it"),
        _said("dataset", _TEXT, "kind of prompts, as the tool names it"),
        field("status", _TEXT, "ok | failed", null=False),
        field("reason", _TEXT, "reason class where failed", null="ok"),
        field("validity", _TEXT, "'valid' or the flags, comma-separated", null="nothing measured"),
        field(
            "validity_detail",
            _TEXT,
            "why each flag was given",
            null="valid, or nothing was measured",
        ),
        field("concurrency", _I32, "closed loop: requests in flight, asked", null="not said"),
        field(
            "request_rate",
            _F64,
            "open loop: requests per second, asked",
            null="not said, or no number: see the text",
        ),
        _said("request_rate_text", _TEXT, "the rate as it was said: a number, inf, trace"),
        _said("max_concurrency", _I32, "open loop: requests in flight at the most"),
        _said("input_len", _I32, "prompt tokens per request, asked"),
        _said("output_len", _I32, "output tokens per request, asked"),
        field("asked", _I32, "requests offered", null="not said"),
        field("completed", _I32, "requests that the tool counts as answered", null=False),
        _said("failed", _I32, "asked - completed"),
        _said("input_tokens", _I64, "prompt tokens of completed requests"),
        _said("output_tokens", _I64, "output tokens of completed requests, as the server counted"),
        _said("output_tokens_retokenized", _I64, "the same, counted again from the text"),
        _said("duration_s", _F64, "measured window, as the tool defines it"),
        _said("output_tok_s", _F64, "output tokens / duration, as the tool defines it"),
        _said("total_tok_s", _F64, "input and output tokens / duration, as the tool defines it"),
        _said("request_s", _F64, "completed requests / duration"),
        *latency_fields(_said),
        _said("cached_share", _F64, "prompt tokens served from the prefix cache"),
        _said("concurrency_mean", _F64, "sum of E2E / duration, as the tool computed it"),
        _said("tokens_per_chunk", _F64, "mean ITL / mean TPOT; above 1 an ITL is no token's"),
        field("streamed", _BOOL, "whether answers came token by token", null="not known"),
        field("raw", _TEXT, "what has no column here, strict JSON, secrets masked", null=False),
    ]
)
