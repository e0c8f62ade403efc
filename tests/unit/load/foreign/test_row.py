"""Numbers that were never measured are null, and a result that is none is refused."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreign_results import (
    details,
    fork_line,
    genai_run,
    latencies,
    mid_2024_line,
    row,
    sglang_line,
    vllm_result,
    zero,
)
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.parquet import table_from_rows
from sgmatrix.core.schemas_references import REFERENCES
from sgmatrix.load.foreign.latencies import COLUMNS

ZEROS = ("ttft", "tpot", "itl", "e2e_latency")
E2E = {"e2e_ms_mean", "e2e_ms_p50", "e2e_ms_p90", "e2e_ms_p99"}

# --- numbers that were never measured -----------------------------------------------------------

NOTHING = {"completed": 0, "total_input_tokens": 0, "total_output_tokens": 0}
NO_RATES = {"request_throughput": 0.0, "output_throughput": 0.0}


@pytest.mark.parametrize("value", [0.0, math.nan, None])
@pytest.mark.parametrize("details_of", [{}, details(errors=["boom"] * 8)])
def test_without_a_success_there_is_no_latency_and_no_rate(value, details_of):
    zeros = zero(*ZEROS, value=value)
    rates = NO_RATES if value is not None else {"output_throughput": math.nan}

    found = row(sglang_line(**NOTHING, **rates, **zeros, **details_of, concurrency=0.0))

    measured = [*COLUMNS, "output_tok_s", "total_tok_s", "request_s", "concurrency_mean"]
    assert {name: found[name] for name in measured} == dict.fromkeys(measured)
    assert (found["status"], found["reason"], found["completed"]) == ("failed", "client_crash", 0)
    assert found["validity"] == ("partial" if details_of else None)


def test_of_vllm_too_a_run_that_failed_has_no_latency_of_0():
    names = ("ttft", "tpot", "itl", "e2el")

    found = row(
        vllm_result(failed=8, **NOTHING, **NO_RATES, total_token_throughput=0.0, **zero(*names))
    )

    assert latencies(found) == {}
    assert found["output_tok_s"] is None
    assert (found["status"], found["failed"], found["validity"]) == ("failed", 8, "partial")
    assert json.loads(found["raw"])["mean_ttft_ms"] == 0.0  # what it wrote is kept


def test_one_token_has_a_first_token_and_no_time_per_further_one():
    found = row(
        sglang_line(
            random_output_len=1,
            total_output_tokens=8,
            total_output_tokens_retokenized=8,
            output_throughput=2.0,
            concurrency=0.2,
            **zero("tpot", "itl"),
            **zero("e2e_latency", value=100.5),
            **zero("ttft", value=100.4),
        )
    )

    assert not [name for name in latencies(found) if name.startswith(("tpot", "itl"))]
    assert (found["ttft_ms_mean"], found["e2e_ms_mean"]) == (100.4, 100.5)
    assert (found["streamed"], found["validity"]) == (None, "valid")


def test_an_answer_that_was_not_streamed_has_its_whole_time_only():
    whole = zero("e2e_latency", value=590.0) | zero("ttft", value=590.0)

    found = row(sglang_line(**whole, **zero("tpot", "itl")))

    assert found["streamed"] is False
    assert found["e2e_ms_p99"] == 590.0
    assert latencies(found).keys() == E2E
    assert found["validity"] == "valid"


def test_vllm_s_time_per_token_without_a_stream_is_none():
    # its TTFT stays 0, so that its TPOT is E2E over the further tokens
    found = row(vllm_result(**zero("ttft", "itl"), **zero("tpot", value=12.04)))

    assert found["streamed"] is False
    assert found["e2e_ms_mean"] == 590.0
    assert latencies(found).keys() == E2E - {"e2e_ms_p90"}
    assert found["validity"] == "valid"


def test_the_lists_of_vllm_add_nothing_to_what_it_says():
    lists = details(10, ttfts=[0.0] * 10)  # a first token is 0 where nothing was streamed

    found = row(vllm_result(**lists))

    assert (found["asked"], found["failed"], found["validity"]) == (8, 0, "valid")


@pytest.mark.parametrize("latency", ["ttft", "itl", "tpot", "e2e_latency"])
def test_a_latency_of_0_without_a_cause_is_null_and_flagged(latency):
    found = row(sglang_line(**zero(latency)))

    column = "e2e" if latency == "e2e_latency" else latency
    assert [found[f"{column}_ms_{stat}"] for stat in ("mean", "p50", "p90", "p99")] == [None] * 4
    assert found["validity"] == "implausible"
    assert json.loads(found["raw"])[f"mean_{latency}_ms"] == 0.0


def test_an_infinite_latency_is_null_and_flagged():
    found = row(sglang_line(p99_ttft_ms=math.inf))

    assert (found["ttft_ms_p99"], found["validity"]) == (None, "implausible")
    assert json.loads(found["raw"])["p99_ttft_ms"] == "Infinity"


def test_tokens_that_were_not_counted_are_not_0():
    found = row(sglang_line(total_output_tokens=0, output_throughput=0.0))

    assert (found["output_tokens"], found["output_tok_s"]) == (None, None)
    assert found["ttft_ms_mean"] == 100.0
    assert found["validity"] == "length_mismatch"


def test_the_rust_client_s_count_of_0_is_no_count():
    line = sglang_line(total_output_tokens_retokenized=0)

    assert row(line)["validity"] == "length_mismatch"  # from the Python client: no text came
    found = row({**line, "protocol": "http"})
    assert (found["output_tokens_retokenized"], found["validity"]) == (None, "valid")


def test_several_tokens_in_a_chunk_are_told():
    found = row(sglang_line(**zero("itl", value=80.0)))

    assert found["tokens_per_chunk"] == pytest.approx(8.0)
    assert found["validity"] == "valid"


def test_absurd_numbers_are_kept_and_flagged():
    found = row(sglang_line(output_throughput=4_008_080.0))

    assert (found["output_tok_s"], found["validity"]) == (4_008_080.0, "implausible")
    assert found["validity_detail"] == (
        "implausible: output_tok_s is 4.00808e+06, possible is 0 to 1e+06; "
        "output_tok_s is 4.00808e+06, its counts say 400 in 4 s"
    )


@pytest.mark.parametrize("key", ["cache_hit_rate_pct", "hit_rate_pct"])
def test_a_share_of_the_cache_is_no_percentage(key):
    found = row(sglang_line(cache_report={key: 98.5, "total_cached_tokens": 788}))

    assert found["cached_share"] == pytest.approx(0.985)
    assert found["validity"] == "cache_hits"
    assert json.loads(found["raw"])["cache_report"] == {"total_cached_tokens": 788}


# --- anything ------------------------------------------------------------------------------------

ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**63 - 1, 10**400, 1.7e308, -0.0])
    | st.sampled_from(["", "inf", "NaN", "1e999", "8", "\ud800", "trace"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("stats"), inner),
    max_leaves=4,
)
KINDS = st.sampled_from([sglang_line, mid_2024_line, fork_line, vllm_result])


@settings(max_examples=400)
@given(data=st.data(), made=KINDS, run=st.booleans())
def test_whatever_a_result_holds_it_is_refused_or_a_row_without_invented_numbers(data, made, run):
    line = genai_run() if run else made(**details())
    inner = line["aggregated_metrics"] if run else line
    for key in data.draw(st.lists(st.sampled_from(sorted(inner)), max_size=4, unique=True)):
        inner[key] = data.draw(ANY, label=key)

    try:
        found = row(line)
    except SgmatrixError:
        return

    (stored,) = table_from_rows([found], REFERENCES).to_pylist()
    assert all(stored[name] != 0 for name in COLUMNS)
    assert all(math.isfinite(value) for value in stored.values() if isinstance(value, float))
    assert stored["completed"] > 0 or latencies(stored) == {}
    json.loads(stored["raw"], parse_constant=pytest.fail)


@pytest.mark.parametrize("value", [1.7e308, -1.7e308])
def test_seconds_that_overflow_as_milliseconds_are_none(value):
    run = genai_run()
    run["aggregated_metrics"]["stats"]["ttft"]["mean"] = value

    assert row(run)["ttft_ms_mean"] is None


def test_counts_whose_sum_no_column_holds_are_none():
    found = row(vllm_result(completed=2**31 - 1, failed=1, num_prompts=None))

    assert (found["asked"], found["failed"]) == (None, 1)


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "lost", "wanted"),
    [
        (sglang_line(), "completed", r"completed \(completed\)"),
        (sglang_line(), "duration", r"duration_s \(duration or benchmark_duration\)"),
        (
            sglang_line(),
            "output_throughput",
            r"output_tok_s \(output_throughput or output_token_throughput\)",
        ),
        (vllm_result(), "output_throughput", r"output_tok_s \(output_throughput\)"),
    ],
)
@pytest.mark.parametrize("instead", [None, math.nan, "", True, "lost"])
def test_a_result_without_what_makes_it_one_names_place_tool_and_keys(data, lost, wanted, instead):
    data = {**data, lost: instead}
    if instead == "lost":
        del data[lost]

    with pytest.raises(
        SgmatrixError, match=rf"old\.jsonl:3: \w+ \([\w ]+\) without {wanted};"
    ) as e:
        row(data)

    assert e.value.code == "result_unreadable"
    assert "its keys are " in e.value.facts
    assert "max_concurrency" in e.value.facts


def test_a_run_of_genai_bench_names_the_keys_that_lie_inside():
    run = genai_run()
    del run["aggregated_metrics"]["num_completed_requests"]

    with pytest.raises(SgmatrixError, match=r"without completed .*and in aggregated_metrics error"):
        row(run)


def test_keys_of_no_known_tool_are_named():
    with pytest.raises(SgmatrixError, match=r"old\.jsonl:3: no tool .* such keys: a, b\?c; fix"):
        row({"b\x1bc": 1, "a": 2})


def test_of_very_many_keys_the_first_are_named():
    with pytest.raises(SgmatrixError, match=r"k0, .* and 40 more;"):
        row({f"k{i}": i for i in range(100)})
