"""SGLang's own Rust client against the stand-in: it must take it for the real server.

Behaviours of the client that our own code relies on, or must detect, are kept here as tests, so
that a new version of the client shows what changed. Seen with the extension of sglang 0.5.23.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from standin.launcher import keeping_time

ROOT = Path(__file__).parents[3]
EXTENSIONS = ROOT / ".engines/sglang-cpu/lib/python3.11/site-packages/sglang/srt/rust_extensions"
FIXED_PAUSE_S = 1.0  # between warm-up and run; no flag of 0.5.23 shortens it

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        not list(EXTENSIONS.glob("_bench.cpython-311-*.so")) or sys.version_info[:2] != (3, 11),
        reason=f"needs CPython 3.11 and {EXTENSIONS.relative_to(ROOT)}/_bench",
    ),
]

RUN = """
import importlib.util, sys, time
spec = importlib.util.spec_from_file_location("_bench", sys.argv.pop(1))
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)
began = time.perf_counter()
bench.run_argv(["sglang-bench", *sys.argv[1:]])
print("CALL_S", time.perf_counter() - began)
"""


def bench(
    standin,
    tmp_path: Path,
    *,
    n: int,
    c: int,
    out: int,
    flags: str = "",
    backend: str = "sglang",
    vocabulary: int = 100_000,
) -> dict[str, Any]:
    """Run the client once; returns its line with `exit`, `stderr` and `call_s` added."""
    result = tmp_path / "line.json"
    fixed = (
        f"--backend {backend} --dataset-name random-ids --tokenize-prompt "
        f"--vocab-size {vocabulary} "
        "--disable-retokenize --random-range-ratio 1 --disable-tqdm --output-details --seed 1 "
        f"--model nonce --num-prompts {n} --max-concurrency {c} --random-input-len 64 "
        f"--random-output-len {out} --base-url {standin.url} --output-file {result} {flags}"
    )
    extension = next(EXTENSIONS.glob("_bench.cpython-311-*.so"))
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(extension), *fixed.split()],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    line = json.loads(result.read_text()) if result.exists() else {}
    call_s = [float(x.split()[1]) for x in done.stdout.splitlines() if x.startswith("CALL_S")]
    return {**line, "exit": done.returncode, "stderr": done.stderr, "call_s": sum(call_s)}


def test_every_number_of_the_line_agrees_with_the_truth(launch, tmp_path):
    def work(standin):
        (tmp_path / "line.json").unlink(missing_ok=True)
        flags = "--warmup-requests 1 --flush-cache"
        return bench(standin, tmp_path, n=16, c=8, out=30, flags=flags)

    times = ("--standin-ttft-ms", "20", "--standin-tpot-ms", "10")
    standin, line = keeping_time(launch, *times, work=work)

    assert (line["exit"], line["completed"]) == (0, 16)
    assert line["output_lens"] == [30] * 16
    assert line["input_lens"] == [64] * 16
    assert line["errors"] == [""] * 16
    assert all(text.split() == ["tok"] * 30 for text in line["generated_texts"])
    assert all(0.020 <= ttft < 0.090 for ttft in line["ttfts"])
    assert line["mean_tpot_ms"] == pytest.approx(10, rel=0.1)
    assert [len(itls) for itls in line["itls"]] == [29] * 16
    assert line["server_info"]["version"] == "0.5.23+standin"
    assert standin.outcomes() == ["ok"] * 17  # one was the warm-up
    assert [event["ok"] for event in standin.events("flush")] == [True]


def test_openai_route_gives_the_same_counts(launch, tmp_path):
    standin = launch("--standin-tpot-ms", "10")
    line = bench(standin, tmp_path, n=4, c=2, out=10, backend="sglang-oai")

    assert (line["completed"], line["output_lens"]) == (4, [10] * 4)
    assert line["mean_tpot_ms"] == pytest.approx(10, rel=0.5)


def test_a_call_costs_one_fixed_second_whatever_the_flags(launch, tmp_path):
    standin = launch()
    every, none = (
        "--warmup-requests 1 --flush-cache",
        "--warmup-requests 0 --ready-check-timeout-sec 0",
    )
    for flags in (every, none):
        (tmp_path / "line.json").unlink(missing_ok=True)
        line = bench(standin, tmp_path, n=4, c=4, out=4, flags=flags)
        beyond_s = line["call_s"] - line["duration"]

        assert FIXED_PAUSE_S <= beyond_s < FIXED_PAUSE_S + 0.5


def test_random_ids_of_a_small_vocabulary_repeat_whole_prompts(launch, tmp_path):
    standin = launch()
    bench(standin, tmp_path, n=40, c=1, out=1, vocabulary=100, flags="--warmup-requests 0")

    hits = [event["cached_tokens"] for event in standin.events("first")]
    assert set(hits) == {0, 63}  # a prompt is a run of successive ids: same start, same prompt


def test_warm_up_repeats_the_first_prompt_and_so_fills_the_cache(launch, tmp_path):
    standin = launch()
    bench(standin, tmp_path, n=2, c=1, out=4, flags="--warmup-requests 2")

    hits = [event["cached_tokens"] for event in standin.events("first")]
    assert hits[:2] == [0, 63]
    assert sorted(hits[2:]) == [0, 63]  # sorted: it does not keep the order of its prompts


def test_http_500_is_counted_out_but_the_exit_code_is_0(launch, tmp_path):
    standin = launch("--standin-fault", "http_500:0.5")
    line = bench(standin, tmp_path, n=8, c=2, out=4, flags="--warmup-requests 0")

    assert (line["exit"], line["completed"]) == (0, 4)
    assert sum(error.startswith("Internal Server Error") for error in line["errors"]) == 4
    assert "4 of 8 requests failed." in line["stderr"]


def test_no_success_at_all_is_zeros_and_exit_code_0(launch, tmp_path):
    standin = launch("--standin-fault", "http_500:1")
    line = bench(standin, tmp_path, n=4, c=2, out=4, flags="--warmup-requests 0")

    assert (line["exit"], line["completed"]) == (0, 0)
    assert (line["mean_ttft_ms"], line["p99_tpot_ms"], line["output_throughput"]) == (0, 0, 0)


def test_an_error_inside_the_stream_is_taken_for_success(launch, tmp_path):
    standin = launch("--standin-fault", "sse_error:1")
    line = bench(standin, tmp_path, n=4, c=2, out=20, flags="--warmup-requests 1")

    assert (line["exit"], line["completed"], line["errors"]) == (0, 4, [""] * 4)
    assert line["output_lens"] == [2] * 4  # the only sign
    assert set(standin.outcomes()) == {"sse_error"}


def test_an_error_as_the_first_event_is_a_failure(launch, tmp_path):
    standin = launch("--context-length", "70")
    line = bench(standin, tmp_path, n=4, c=2, out=20, flags="--warmup-requests 0")

    assert line["completed"] == 0
    assert set(line["errors"]) == {"the response contained no generated tokens"}


def test_a_truncated_stream_is_a_failure(launch, tmp_path):
    standin = launch("--standin-fault", "truncate:0.5")
    line = bench(standin, tmp_path, n=4, c=2, out=20, flags="--warmup-requests 0")

    assert (line["exit"], line["completed"]) == (0, 2)
    assert sorted(set(line["errors"])) == ["", "stream read failed: error decoding response body"]


def test_a_server_that_dies_leaves_a_line_and_exit_code_0(launch, tmp_path):
    standin = launch("--standin-fault", "die_after:5")
    line = bench(standin, tmp_path, n=8, c=2, out=4, flags="--warmup-requests 0")

    assert standin.exit_code() == -9
    assert (line["exit"], line["server_info"]) == (0, None)
    assert line["completed"] < 8


def test_a_failed_warm_up_leaves_no_line(launch, tmp_path):
    standin = launch("--standin-fault", "http_500:1")
    line = bench(standin, tmp_path, n=4, c=2, out=4, flags="--warmup-requests 1")

    assert line["exit"] == 1
    assert "RuntimeError: warmup failed" in line["stderr"]
    assert "completed" not in line


def test_a_refused_flush_is_only_a_line_on_stderr(launch, tmp_path):
    standin = launch("--standin-fault", "flush_refused")
    line = bench(standin, tmp_path, n=2, c=1, out=4, flags="--warmup-requests 1 --flush-cache")

    assert (line["exit"], line["completed"]) == (0, 2)
    assert "flush_cache returned 400 Bad Request" in line["stderr"]


def test_inter_token_times_are_spread_over_the_tokens_of_an_event(launch, tmp_path):
    standin = launch("--standin-fault", "multi_token_chunks:4", "--standin-tpot-ms", "10")
    line = bench(standin, tmp_path, n=1, c=1, out=9, flags="--warmup-requests 0")

    assert line["output_lens"] == [9]
    assert len(line["itls"][0]) == 8  # two events after the first, four tokens each
    assert len(set(line["itls"][0][:4])) == 1  # so bursts cannot be seen in its percentiles


def test_missing_counts_make_it_add_up_cumulative_ids(launch, tmp_path):
    standin = launch("--standin-fault", "no_usage")
    line = bench(standin, tmp_path, n=1, c=1, out=4, flags="--warmup-requests 0")

    assert line["output_lens"] == [1 + 2 + 3 + 4]


def test_a_one_token_answer_gets_a_tpot_of_0_instead_of_none(launch, tmp_path):
    line = bench(launch(), tmp_path, n=2, c=1, out=1, flags="--warmup-requests 0")

    assert (line["completed"], line["output_lens"]) == (2, [1, 1])
    assert (line["mean_tpot_ms"], line["mean_itl_ms"]) == (0, 0)
