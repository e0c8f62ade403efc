"""Each form of each tool becomes the same columns, and what was asked stays what was asked."""

import json
import math

import pytest

from foreign_results import (
    details,
    fork_line,
    genai_run,
    known,
    latencies,
    mid_2024_line,
    row,
    sglang_line,
    vllm_result,
)
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.schemas_references import REFERENCES

LATENCIES = {
    "ttft_ms_mean": 100.0,
    "ttft_ms_p50": 95.0,
    "ttft_ms_p90": 140.0,
    "ttft_ms_p99": 180.0,
    "tpot_ms_mean": 10.0,
    "tpot_ms_p50": 9.5,
    "tpot_ms_p90": 11.0,
    "tpot_ms_p99": 12.0,
    "itl_ms_mean": 10.0,
    "itl_ms_p50": 9.0,
    "itl_ms_p90": 13.0,
    "itl_ms_p99": 20.0,
    "e2e_ms_mean": 590.0,
    "e2e_ms_p50": 585.0,
    "e2e_ms_p90": 640.0,
    "e2e_ms_p99": 700.0,
}

# --- each form ----------------------------------------------------------------------------------


def test_a_line_of_sglang_has_every_column_that_it_holds():
    assert known(sglang_line()) == {
        "source_file": "old.jsonl",
        "source_line": 3,
        "source_item": 2,
        "tool": "sglang",
        "form": "with p90",
        "backend": "sglang",
        "dataset": "random",
        "status": "ok",
        "validity": "valid",
        "concurrency": 4,
        "request_rate_text": "inf",
        "input_len": 100,
        "output_len": 50,
        "completed": 8,
        "input_tokens": 800,
        "output_tokens": 400,
        "output_tokens_retokenized": 396,
        "duration_s": 4.0,
        "output_tok_s": 100.0,
        "request_s": 2.0,
        **LATENCIES,
        "concurrency_mean": 1.18,
        "streamed": True,
        "tokens_per_chunk": 1.0,
        "raw": '{"random_range_ratio": 1.0, "sharegpt_output_len": null}',
    }


def test_every_column_of_a_row_is_one_of_the_schema():
    for data in (sglang_line(), mid_2024_line(), fork_line(), vllm_result(), genai_run()):
        assert row(data).keys() == set(REFERENCES.names)


def test_percentiles_that_a_version_did_not_write_are_null():
    medians, newer = row(sglang_line("median")), row(sglang_line("mean median p99"))

    assert latencies(medians) == {
        name: value for name, value in LATENCIES.items() if name.endswith("p50")
    }
    assert medians["tokens_per_chunk"] is None
    assert latencies(newer) == {
        name: value for name, value in LATENCIES.items() if not name.endswith("p90")
    }
    assert (medians["validity"], newer["validity"]) == ("valid", "valid")


def test_the_names_of_2024_are_the_same_columns():
    assert (
        known(mid_2024_line()).items()
        >= {
            "tool": "sglang",
            "form": "names of mid 2024",
            "validity": "valid",
            "request_rate": 2.0,
            "request_rate_text": "2",
            "input_tokens": 800,
            "output_tokens": 400,
            "output_tokens_retokenized": 396,
            "output_tok_s": 100.0,
            "ttft_ms_p50": 95.0,
            "itl_ms_p50": 9.0,
            "e2e_ms_mean": 590.0,
            "e2e_ms_p50": 585.0,
            "raw": "{}",
        }.items()
    )


def test_a_fork_keeps_what_it_added():
    found = known(fork_line())

    assert (found["tool"], found["validity"]) == ("sglang fork", "valid")
    assert (found["output_tokens"], found["total_tok_s"]) == (400, 300.0)
    assert found["raw"] == '{"routing": "round_robin"}'


def test_a_result_of_vllm_has_its_failures_and_its_names():
    found = known(vllm_result())

    assert found["e2e_ms_mean"] == 590.0
    assert found["e2e_ms_p50"] == 585.0
    assert found["e2e_ms_p99"] == 700.0
    assert "e2e_ms_p90" not in found
    assert (found["asked"], found["failed"]) == (8, 0)
    assert (found["total_tok_s"], found["model"]) == (300.0, "made/up")
    assert found["request_rate_text"] == "inf"
    assert "request_rate" not in found
    assert json.loads(found["raw"]).keys() == {
        "burstiness",
        "date",
        "endpoint_type",
        "max_output_tokens_per_s",
        "tokenizer_id",
    }


def test_chosen_percentiles_of_vllm_are_read():
    found = row(vllm_result(p50_ttft_ms=95.0, p90_ttft_ms=140.0, median_ttft_ms=None))

    assert (found["ttft_ms_p50"], found["ttft_ms_p90"]) == (95.0, 140.0)


@pytest.mark.parametrize("unit", [None, "s", "ms"])
def test_a_run_of_genai_bench_is_in_milliseconds_whatever_its_unit(unit):
    found = known(genai_run(unit=unit))

    want = {name: value for name, value in LATENCIES.items() if not name.startswith("itl")}
    assert {name: found[name] for name in want} == pytest.approx(want)
    assert "itl_ms_mean" not in found
    assert (found["duration_s"], found["output_tok_s"], found["request_s"]) == (4.0, 100.0, 2.0)
    assert (found["input_len"], found["output_len"], found["concurrency"]) == (100, 50, 4)
    assert (found["asked"], found["completed"], found["failed"]) == (8, 8, 0)
    assert found["validity"] == "valid"


def test_an_older_run_of_genai_bench_has_its_duration_from_its_rate():
    run = genai_run(requests_per_minute=120.0)
    del run["aggregated_metrics"]["run_duration"], run["aggregated_metrics"]["requests_per_second"]

    found = row(run)

    assert found["duration_s"] == pytest.approx(4.0)  # 8 requests at 120 in a minute
    assert found["request_s"] == pytest.approx(2.0)


def test_an_open_loop_of_genai_bench_has_a_rate_and_no_concurrency():
    found = row(genai_run(iteration_type="request_rate", num_concurrency=2, request_rate=2))

    assert (found["request_rate"], found["request_rate_text"]) == (2.0, "2")
    assert (found["concurrency"], found["max_concurrency"]) == (None, None)


def test_a_unit_of_time_that_is_not_known_is_refused():
    with pytest.raises(SgmatrixError, match=r"old\.jsonl:3: _time_unit is 'us'; fix: it must be"):
        row(genai_run(unit="us"))


# --- what was asked -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "rate", "text"),
    [
        (math.inf, None, "inf"),
        ("inf", None, "inf"),
        ("trace", None, "trace"),
        (2.5, 2.5, "2.5"),
        ("2.5", 2.5, "2.5"),
        (None, None, None),
        (math.nan, None, "nan"),
        (-math.inf, None, "-inf"),
        (2, 2.0, "2"),
        (10**400, None, None),
        (True, None, None),
    ],
)
def test_a_rate_is_a_number_and_what_was_said(stated, rate, text):
    found = row(sglang_line(request_rate=stated))

    assert (found["request_rate"], found["request_rate_text"]) == (rate, text)
    assert found["validity"] == "valid"


def test_the_concurrency_that_was_reached_is_not_the_one_that_was_asked():
    found = row(sglang_line(max_concurrency=None))  # all at once

    assert (found["concurrency"], found["concurrency_mean"]) == (None, 1.18)


@pytest.mark.parametrize("rate", [2.0, "trace"])
def test_the_concurrency_of_an_open_loop_is_a_limit(rate):
    found = row(sglang_line(request_rate=rate))

    assert (found["concurrency"], found["max_concurrency"]) == (None, 4)


def test_lengths_without_effect_are_not_what_was_asked():
    found = row(sglang_line(dataset_name="sharegpt", random_input_len=1024))

    assert (found["input_len"], found["output_len"], found["validity"]) == (None, None, "valid")
    assert json.loads(found["raw"])["random_input_len"] == 1024
    assert row(sglang_line(dataset_name="sharegpt", sharegpt_output_len=50))["output_len"] == 50


@pytest.mark.parametrize(
    ("changes", "given", "counts", "flags"),
    [
        ({}, None, (None, 8, None), "valid"),  # SGLang's line does not say it
        ({}, 8, (8, 8, 0), "valid"),
        ({}, 10, (10, 8, 2), "partial"),
        ({}, 5, (5, 8, None), "implausible"),
        (details(), None, (8, 8, 0), "valid"),
        (details(), 99, (8, 8, 0), "valid"),  # what the line says comes first
        (
            details(10, errors=[""] * 8 + ["boom"] * 2, generated_texts=["w"] * 8 + [""] * 2),
            None,
            (10, 8, 2),
            "partial",
        ),
        # an error with status 200: counted as complete, no error, nothing came
        (details(ttfts=[0.1] * 7 + [0.0]), None, (8, 8, 0), "partial"),
        (details(generated_texts=["w"] * 7 + [""]), None, (8, 8, 0), "partial"),
    ],
)
def test_failures_are_found_where_the_line_has_no_count_of_them(changes, given, counts, flags):
    found = row(sglang_line(**changes), given)

    assert (found["asked"], found["completed"], found["failed"]) == counts
    assert found["validity"] == flags


def test_what_vllm_says_has_failed_makes_it_partial():
    rates = {"request_throughput": 1.5, "output_throughput": 75.0, "total_token_throughput": 225.0}
    tokens = {"total_input_tokens": 600, "total_output_tokens": 300}

    found = row(vllm_result(completed=6, failed=2, **rates, **tokens))

    assert (found["asked"], found["failed"], found["validity"]) == (8, 2, "partial")
