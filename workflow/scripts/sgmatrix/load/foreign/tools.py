"""Which tool wrote a result, and in which of its forms: told by the keys, not by `backend`.

vLLM's client can drive SGLang and SGLang's can drive vLLM, so the backend tells nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sgmatrix.load.foreign.aliases import ToolName

_SGLANG = frozenset(
    {
        "accept_length",
        "mean_e2e_latency",
        "mean_e2e_latency_ms",
        "median_e2e_latency",
        "median_e2e_latency_ms",
        "output_token_throughput",
        "random_range_ratio",
        "server_info",
        "sharegpt_output_len",
        "total_output_retokenized",
        "total_output_tokens_retokenized",
    }
)
_VLLM = frozenset(
    {
        "burstiness",
        "endpoint_type",
        "mean_e2el_ms",
        "median_e2el_ms",
        "model_id",
        "request_goodput",
        "rtfx",
        "tokenizer_id",
        "total_token_throughput",
    }
)
_FORK = frozenset({"total_generated_tokens"})


@dataclass(frozen=True)
class Tool:
    """The tool that wrote a result."""

    name: ToolName
    form: str
    """Which of its sets of keys, named after what tells it apart."""

    def __str__(self) -> str:
        return f"{self.name} ({self.form})"


def recognise(data: Mapping[str, Any]) -> Tool | None:
    """Return the tool that writes such keys; None when it is none that is known."""
    if isinstance(data.get("aggregated_metrics"), Mapping):
        return Tool("genai-bench", _genai_form(data))
    keys = data.keys()
    sglang, vllm = len(keys & _SGLANG), len(keys & _VLLM)
    if vllm > sglang:
        return Tool("vllm", "sweep" if "run_number" in keys else "serve")
    if not sglang:
        return None
    return Tool("sglang fork" if keys & _FORK else "sglang", _sglang_form(data))


def time_unit(data: Mapping[str, Any]) -> str:
    """Return the unit of the times of a genai-bench run, which older versions do not say."""
    return str(data.get("_time_unit", "s"))[:20]


def _genai_form(data: Mapping[str, Any]) -> str:
    per = "minute" if "requests_per_minute" in data["aggregated_metrics"] else "second"
    return f"per {per}, times in {time_unit(data)}"


def _sglang_form(data: Mapping[str, Any]) -> str:
    if data.keys() & {"total_input", "output_token_throughput", "median_ttft"}:
        return "names of mid 2024"
    if "protocol" in data:
        return "rust client"
    if "p90_ttft_ms" in data:
        return "with p90"
    return "with p99" if "p99_ttft_ms" in data else "medians only"
