"""Which tool wrote a result is told by its keys."""

import pytest

from foreign_results import fork_line, genai_run, mid_2024_line, sglang_line, vllm_result
from sgmatrix.load.foreign.tools import Tool, recognise


@pytest.mark.parametrize(
    ("data", "want"),
    [
        (sglang_line(), Tool("sglang", "with p90")),
        (sglang_line("mean median p99"), Tool("sglang", "with p99")),
        (sglang_line("median"), Tool("sglang", "medians only")),
        (sglang_line(protocol="http"), Tool("sglang", "rust client")),
        (sglang_line(backend="vllm"), Tool("sglang", "with p90")),  # its client, another's server
        (mid_2024_line(), Tool("sglang", "names of mid 2024")),
        (fork_line(), Tool("sglang fork", "medians only")),
        (vllm_result(), Tool("vllm", "serve")),
        (vllm_result(backend="sglang"), Tool("vllm", "serve")),
        (
            {"completed": 8, "total_token_throughput": 1.0, "mean_e2el_ms": 2.0},
            Tool("vllm", "serve"),
        ),
        (vllm_result(random_range_ratio=1.0), Tool("vllm", "serve")),
        (sglang_line(total_token_throughput=300.0), Tool("sglang", "with p90")),
        (vllm_result(run_number=0, max_num_seqs=4), Tool("vllm", "sweep")),
        (genai_run(), Tool("genai-bench", "per second, times in s")),
        (genai_run(unit="ms"), Tool("genai-bench", "per second, times in ms")),
        (
            genai_run(requests_per_minute=120.0),
            Tool("genai-bench", "per minute, times in s"),
        ),
    ],
)
def test_a_tool_is_known_by_its_keys_and_not_by_its_backend(data, want):
    assert recognise(data) == want


@pytest.mark.parametrize(
    "data",
    [{}, {"backend": "sglang", "completed": 8}, {"aggregated_metrics": []}, {"results": []}],
)
def test_other_results_are_of_no_known_tool(data):
    assert recognise(data) is None
