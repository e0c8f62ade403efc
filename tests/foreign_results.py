"""Made-up results in the forms of other tools, and the rows that they become.

Each agrees with itself until it is changed.

One run: 8 requests, 100 tokens in and 50 out, 4 s: 2 requests/s, 100 output and 300 total
tokens/s, TTFT 100 ms, TPOT and ITL 10 ms, E2E 590 ms.
"""

from __future__ import annotations

import math
from typing import Any

from sgmatrix.load.foreign.latencies import COLUMNS
from sgmatrix.load.foreign.reader import Found
from sgmatrix.load.foreign.row import reference_row

_STATS = {
    "ttft": (100.0, 95.0, 140.0, 180.0),
    "tpot": (10.0, 9.5, 11.0, 12.0),
    "itl": (10.0, 9.0, 13.0, 20.0),
    "e2e": (590.0, 585.0, 640.0, 700.0),
}
"""Mean, p50, p90, p99 in ms."""


def _latencies(e2e: str, stats: str) -> dict[str, float]:
    """Return the keys of the flat tools, of the statistics that are named."""
    words = dict(zip(("mean", "median", "p90", "p99"), range(4), strict=True))
    return {
        f"{stat}_{e2e if latency == 'e2e' else latency}_ms": values[words[stat]]
        for latency, values in _STATS.items()
        for stat in stats.split()
    }


def sglang_line(stats: str = "mean median p90 p99", **changes: Any) -> dict[str, Any]:
    """Return a line of `sglang.benchmark.serving`; 2025 had no p90, 2024 medians only."""
    return {
        "backend": "sglang",
        "dataset_name": "random",
        "request_rate": math.inf,
        "max_concurrency": 4,
        "sharegpt_output_len": None,
        "random_input_len": 100,
        "random_output_len": 50,
        "random_range_ratio": 1.0,
        "duration": 4.0,
        "completed": 8,
        "total_input_tokens": 800,
        "total_output_tokens": 400,
        "total_output_tokens_retokenized": 396,
        "request_throughput": 2.0,
        "output_throughput": 100.0,
        **_latencies("e2e_latency", stats),
        "concurrency": 1.18,
        **changes,
    }


def details(requests: int = 8, **changes: Any) -> dict[str, Any]:
    """Return what `--output-details` adds."""
    return {
        "ttfts": [0.1] * requests,
        "generated_texts": ["w " * 50] * requests,
        "errors": [""] * requests,
        **changes,
    }


def mid_2024_line(**changes: Any) -> dict[str, Any]:
    """Return a line of SGLang in the names of mid 2024."""
    return {
        "backend": "sglang",
        "dataset_name": "random",
        "request_rate": 2.0,
        "total_input": 800,
        "total_output": 400,
        "total_output_retokenized": 396,
        "mean_e2e_latency": 590.0,
        "median_e2e_latency": 585.0,
        "median_ttft": 95.0,
        "median_itl": 9.0,
        "output_token_throughput": 100.0,
        "random_input_len": 100,
        "random_output_len": 50,
        "duration": 4.0,
        "completed": 8,
        **changes,
    }


def fork_line(**changes: Any) -> dict[str, Any]:
    """Return a line of a fork of SGLang that renamed a key and left others out."""
    return {
        "backend": "sglang",
        "routing": "round_robin",
        "request_rate": 2.0,
        "completed": 8,
        "duration": 4.0,
        "total_input_tokens": 800,
        "total_generated_tokens": 400,
        "total_throughput": 300.0,
        "output_throughput": 100.0,
        "mean_e2e_latency_ms": 590.0,
        **changes,
    }


def vllm_result(**changes: Any) -> dict[str, Any]:
    """Return a result of `vllm bench serve`."""
    return {
        "date": "20260901-101112",
        "endpoint_type": "openai",
        "backend": "openai",
        "model_id": "made/up",
        "tokenizer_id": "made/up",
        "num_prompts": 8,
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": 4,
        "duration": 4.0,
        "completed": 8,
        "failed": 0,
        "total_input_tokens": 800,
        "total_output_tokens": 400,
        "request_throughput": 2.0,
        "output_throughput": 100.0,
        "total_token_throughput": 300.0,
        "max_output_tokens_per_s": 160.0,
        **_latencies("e2el", "mean median p99"),
        **changes,
    }


def genai_run(unit: str | None = None, **changes: Any) -> dict[str, Any]:
    """Return a run of genai-bench; times in seconds, or in `unit`."""
    scale = 1e-3 if unit != "ms" else 1.0
    words = ("mean", "p50", "p90", "p99")
    stats: dict[str, Any] = {
        name: {word: value * scale for word, value in zip(words, _STATS[key], strict=True)}
        for name, key in (("ttft", "ttft"), ("tpot", "tpot"), ("e2e_latency", "e2e"))
    }
    stats |= {"num_input_tokens": {"sum": 800}, "num_output_tokens": {"sum": 400}}
    run = {
        "scenario": "D(100,50)",
        "num_concurrency": 4,
        "iteration_type": "num_concurrency",
        "run_duration": 4.0,
        "mean_output_throughput_tokens_per_s": 100.0,
        "mean_total_tokens_throughput_tokens_per_s": 300.0,
        "requests_per_second": 2.0,
        "error_codes_frequency": {},
        "num_error_requests": 0,
        "num_completed_requests": 8,
        "num_requests": 8,
        "stats": stats,
        **changes,
    }
    whole = {"aggregated_metrics": run, "individual_request_metrics": [{"ttft": 0.1}] * 8}
    return whole if unit is None else {**whole, "_time_unit": unit}


def row(data: dict[str, Any], asked: int | None = None) -> dict[str, Any]:
    """Return the row of a result that stands in line 3 of a file."""
    return reference_row(Found("old.jsonl", 3, 2, data), asked)


def known(data: dict[str, Any], asked: int | None = None) -> dict[str, Any]:
    """Return what of it is not null."""
    return {name: value for name, value in row(data, asked).items() if value is not None}


def latencies(found: dict[str, Any]) -> dict[str, float]:
    """Return the latencies of a row that are not null."""
    return {name: found[name] for name in COLUMNS if found[name] is not None}


def zero(*names: str, value: float | None = 0.0) -> dict[str, float | None]:
    """Return the keys of all statistics of these latencies, at 0."""
    stats = ("mean", "median", "p90", "p99")
    return {f"{stat}_{name}_ms": value for name in names for stat in stats}
