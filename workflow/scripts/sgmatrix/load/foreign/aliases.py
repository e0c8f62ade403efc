"""Which key of which tool is which column: the one place that knows, as data.

Sources, read and not guessed
    SGLang       `sglang/benchmark/serving.py` 0.5.23, a line of its Rust client, result files of
                 December 2024; the names of mid 2024 from a copy of that client in another project
    its forks    a result file with `total_generated_tokens`
    vLLM         `vllm/benchmarks/serve.py` at 009e6d4a, result files of 0.25.1
    genai-bench  `genai_bench/metrics/` at 00e863aa, `time_units.py`, and its own test fixture

Of several keys for a column the first that holds a value is taken; the others stay in `raw`.
`concurrency` of SGLang is what was reached, not what was asked; the peaks (`max_…`) are of no
use and stay in `raw`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sgmatrix.core.schemas import QUANTILES

ToolName = Literal["sglang", "sglang fork", "vllm", "genai-bench"]
Kind = Literal["number", "count", "tokens", "text"]


@dataclass(frozen=True)
class Unit:
    """Unit of a value in the tool's file, and what turns it into the column's."""

    name: str
    factor: float = 1.0
    kind: Kind = "number"


@dataclass(frozen=True)
class Alias:
    """A key of some tools and the column that it is."""

    column: str
    key: str
    """Dots lead into nested objects."""
    unit: Unit
    tools: tuple[ToolName, ...]


COUNT, TOKENS, TEXT = (
    Unit("count", kind="count"),
    Unit("tokens", kind="tokens"),
    Unit("", 1, "text"),
)
S, MS, S_TO_MS = Unit("s"), Unit("ms"), Unit("s", 1e3)
TOKENS_PER_S, PER_S, PER_MINUTE = Unit("tokens/s"), Unit("1/s"), Unit("1/min", 1 / 60)
PERCENT, REQUESTS = Unit("%", 0.01), Unit("requests")

_SGLANG: tuple[ToolName, ...] = ("sglang", "sglang fork")
_VLLM: tuple[ToolName, ...] = ("vllm",)
_BOTH: tuple[ToolName, ...] = (*_SGLANG, *_VLLM)
_FORK: tuple[ToolName, ...] = ("sglang fork",)
_GENAI: tuple[ToolName, ...] = ("genai-bench",)

_FLAT_LATENCIES = (
    ("ttft", "ttft_ms", _BOTH),
    ("tpot", "tpot_ms", _BOTH),
    ("itl", "itl_ms", _BOTH),
    ("e2e", "e2e_latency_ms", _SGLANG),
    ("e2e", "e2el_ms", _VLLM),
)
_GENAI_LATENCIES = {"ttft": "ttft", "tpot": "tpot", "e2e": "e2e_latency"}


def _flat_latencies() -> Iterator[Alias]:
    for latency, word, tools in _FLAT_LATENCIES:
        yield Alias(f"{latency}_ms_mean", f"mean_{word}", MS, tools)
        yield Alias(f"{latency}_ms_p50", f"median_{word}", MS, tools)
        for q in QUANTILES:
            # a p50 beside the median is vLLM's, where percentiles are chosen
            writers = tuple(tool for tool in tools if q != 50 or tool == "vllm")
            if writers:
                yield Alias(f"{latency}_ms_p{q}", f"p{q}_{word}", MS, writers)


def _genai_latencies() -> Iterator[Alias]:
    for latency, word in _GENAI_LATENCIES.items():
        for stat in ("mean", *(f"p{q}" for q in QUANTILES)):
            key = f"aggregated_metrics.stats.{word}.{stat}"
            yield Alias(f"{latency}_ms_{stat}", key, S_TO_MS, _GENAI)


ALIASES: tuple[Alias, ...] = (
    Alias("engine_version", "server_info.version", TEXT, _SGLANG),
    Alias("backend", "backend", TEXT, _BOTH),
    Alias("model", "model_id", TEXT, _VLLM),
    Alias("model", "server_info.model_path", TEXT, _SGLANG),
    Alias("dataset", "dataset_name", TEXT, _SGLANG),
    Alias("dataset", "aggregated_metrics.scenario", TEXT, _GENAI),
    Alias("concurrency", "max_concurrency", COUNT, _BOTH),
    Alias("concurrency", "aggregated_metrics.num_concurrency", COUNT, _GENAI),
    Alias("request_rate", "request_rate", PER_S, _BOTH),
    Alias("request_rate", "aggregated_metrics.request_rate", PER_S, _GENAI),
    Alias("input_len", "random_input_len", COUNT, _SGLANG),
    Alias("output_len", "random_output_len", COUNT, _SGLANG),
    Alias("asked", "num_prompts", COUNT, _VLLM),
    Alias("asked", "aggregated_metrics.num_requests", COUNT, _GENAI),
    Alias("completed", "completed", COUNT, _BOTH),
    Alias("completed", "aggregated_metrics.num_completed_requests", COUNT, _GENAI),
    Alias("failed", "failed", COUNT, _VLLM),
    Alias("failed", "aggregated_metrics.num_error_requests", COUNT, _GENAI),
    Alias("input_tokens", "total_input_tokens", TOKENS, _BOTH),
    Alias("input_tokens", "total_input", TOKENS, _SGLANG),
    Alias("input_tokens", "aggregated_metrics.stats.num_input_tokens.sum", TOKENS, _GENAI),
    Alias("output_tokens", "total_output_tokens", TOKENS, _BOTH),
    Alias("output_tokens", "total_output", TOKENS, _SGLANG),
    Alias("output_tokens", "total_generated_tokens", TOKENS, _FORK),
    Alias("output_tokens", "aggregated_metrics.stats.num_output_tokens.sum", TOKENS, _GENAI),
    Alias("output_tokens_retokenized", "total_output_tokens_retokenized", TOKENS, _SGLANG),
    Alias("output_tokens_retokenized", "total_output_retokenized", TOKENS, _SGLANG),
    Alias("duration_s", "duration", S, _BOTH),
    Alias("duration_s", "benchmark_duration", S, _SGLANG),
    Alias("duration_s", "aggregated_metrics.run_duration", S, _GENAI),
    Alias("output_tok_s", "output_throughput", TOKENS_PER_S, _BOTH),
    Alias("output_tok_s", "output_token_throughput", TOKENS_PER_S, _SGLANG),
    Alias(
        "output_tok_s",
        "aggregated_metrics.mean_output_throughput_tokens_per_s",
        TOKENS_PER_S,
        _GENAI,
    ),
    Alias("total_tok_s", "total_throughput", TOKENS_PER_S, _SGLANG),
    Alias("total_tok_s", "total_token_throughput", TOKENS_PER_S, _VLLM),
    Alias(
        "total_tok_s",
        "aggregated_metrics.mean_total_tokens_throughput_tokens_per_s",
        TOKENS_PER_S,
        _GENAI,
    ),
    Alias("request_s", "request_throughput", PER_S, _BOTH),
    Alias("request_s", "aggregated_metrics.requests_per_second", PER_S, _GENAI),
    Alias("request_s", "aggregated_metrics.requests_per_minute", PER_MINUTE, _GENAI),
    *_flat_latencies(),
    # the names of mid 2024 have no unit; their values are milliseconds as well
    Alias("ttft_ms_p50", "median_ttft", MS, _SGLANG),
    Alias("itl_ms_p50", "median_itl", MS, _SGLANG),
    Alias("e2e_ms_mean", "mean_e2e_latency", MS, _SGLANG),
    Alias("e2e_ms_p50", "median_e2e_latency", MS, _SGLANG),
    *_genai_latencies(),
    Alias("cached_share", "cache_report.cache_hit_rate_pct", PERCENT, _SGLANG),
    Alias("cached_share", "cache_report.hit_rate_pct", PERCENT, _SGLANG),
    Alias("concurrency_mean", "concurrency", REQUESTS, _SGLANG),
)

REQUIRED = ("completed", "duration_s", "output_tok_s")
"""A result without one of them is none."""

HOUR_MS = 3_600_000.0
RANGES: dict[str, tuple[float, float]] = {
    # a request that takes longer is ended by the clients of SGLang and vLLM after six hours;
    # below 0.1 ms no answer comes over HTTP, and a value there is seconds under a name in ms
    "ttft_ms": (0.1, 6 * HOUR_MS),
    "e2e_ms": (0.1, 6 * HOUR_MS),
    # 20,000 tokens/s in one stream
    "tpot_ms": (0.05, HOUR_MS),
    # chunks that arrive together lie microseconds apart
    "itl_ms": (0.0, HOUR_MS),
    "duration_s": (1e-3, 7 * 24 * 3600.0),
    "output_tok_s": (0.0, 1e6),
    "total_tok_s": (0.0, 1e8),
    "request_s": (0.0, 1e6),
    "request_rate": (0.0, 1e6),
    "cached_share": (0.0, 1.0),
    "concurrency_mean": (0.0, 1e6),
}
"""Sanity range of a column, or of all statistics of a latency, in the column's unit.

What lies outside is kept and flagged: either it is wrong or its unit is.
"""


def range_of(column: str) -> tuple[float, float] | None:
    """Return the sanity range of a column; None where any value can be."""
    base = column.rpartition("_")[0] if "_ms_" in column else column
    return RANGES.get(base)


def table(tool: ToolName) -> dict[str, list[Alias]]:
    """Return the aliases of a tool by column, the first key first."""
    found: dict[str, list[Alias]] = {}
    for alias in ALIASES:
        if tool in alias.tools:
            found.setdefault(alias.column, []).append(alias)
    return found
