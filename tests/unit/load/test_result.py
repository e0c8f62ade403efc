"""From the client's result line to rows and metrics; all values worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import client_line
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.load.result import percentile, request_rows, summarise


def line(**changes):
    """Two requests of 16 tokens in and 4 out: TTFT 10 ms, then gaps of 2, 3 and 4 ms."""
    return client_line(2, **{"itls": [[0.002, 0.003, 0.004]] * 2, **changes})


# --- rows ----------------------------------------------------------------------------------------


def test_a_good_request_has_all_its_times_in_milliseconds():
    first, second = request_rows(line(), 2, 4)

    assert first == {
        "request": 0,
        "ok": True,
        "error": None,
        "input_tokens": 16,
        "requested_output_tokens": 4,
        "output_tokens": 4,
        "ttft_ms": pytest.approx(10),
        "e2e_ms": pytest.approx(19),  # 10 + 2 + 3 + 4
        "tpot_ms": pytest.approx(3),  # 9 ms for 3 further tokens
        "itl_ms": pytest.approx([2, 3, 4]),
    }
    assert second == {**first, "request": 1}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"ttfts": [0.01, 0.0]}, "no first token"),
        ({"ttfts": [0.01, None]}, "no first token"),
        ({"ttfts": [0.01, math.nan]}, "no first token"),
        ({"ttfts": [0.01, -1.0]}, "no first token"),
        ({"output_lens": [4, 0]}, "no output token"),
        ({"generated_texts": ["w", ""]}, "empty text"),
        ({"errors": ["", "Internal Server Error"]}, "Internal Server Error"),
        ({"errors": [None, "boom"], "ttfts": [0.01, 0.0]}, "boom"),
    ],
)
def test_a_request_that_is_not_whole_has_its_error_and_no_numbers(changes, error):
    first, second = request_rows(line(**changes), 2, 4)

    assert first["ok"] is True
    assert second == {
        "request": 1,
        "ok": False,
        "error": error,
        "input_tokens": 16,
        "requested_output_tokens": 4,
        **dict.fromkeys(["output_tokens", "ttft_ms", "tpot_ms", "e2e_ms", "itl_ms"]),
    }


def test_one_token_has_no_time_per_further_token():
    (row,) = request_rows(client_line(1, tokens=1, ttft_s=0.25), 1, 1)

    assert row["ok"] is True
    assert (row["ttft_ms"], row["e2e_ms"], row["tpot_ms"], row["itl_ms"]) == (250, 250, None, [])


@pytest.mark.parametrize("column", ["input_lens", "output_lens", "ttfts", "itls", "generated_texts",
                                    "errors"])  # fmt: skip
def test_a_line_without_a_column_is_not_this_load_s(column):
    short = line()
    del short[column]

    with pytest.raises(SgmatrixError, match=rf"missing \['{column}'\]") as caught:
        request_rows(short, 2, 4)

    assert caught.value.code == "client_crash"


@pytest.mark.parametrize(
    ("changes", "asked"),
    [({}, 3), ({}, 1), ({"errors": [""]}, 2), ({"ttfts": "0.01"}, 2), ({"itls": None}, 2)],
)
def test_a_line_of_another_number_of_requests_is_not_this_load_s(changes, asked):
    with pytest.raises(SgmatrixError, match=f"is not that of {asked} requests") as caught:
        request_rows(line(**changes), asked, 4)

    assert caught.value.code == "client_crash"


# --- metrics -------------------------------------------------------------------------------------


def test_metrics_are_those_of_the_ok_requests():
    mixed = client_line(
        3,
        duration_s=2.0,
        ttfts=[0.010, 0.030, 0.0],
        itls=[[0.001, 0.003], [0.004, 0.008], []],
        output_lens=[3, 3, 3],  # the client counts the failed one with the length asked
        generated_texts=["a", "b", ""],
        errors=["", "", "boom"],
    )

    metrics = summarise(request_rows(mixed, 3, 3), 2.0)

    assert {k: v for k, v in metrics.items() if "_ms_" not in k} == {
        "completed": 2,
        "failed": 1,
        "duration_s": 2.0,
        "output_tok_s": 3.0,  # 6 tokens in 2 s
        "total_tok_s": 19.0,  # and 32 prompt tokens
        "request_s": 1.0,
    }
    assert metrics["ttft_ms_mean"] == pytest.approx(20)
    assert metrics["ttft_ms_p50"] == pytest.approx(20)
    assert metrics["ttft_ms_p90"] == pytest.approx(28)  # 10 + 0.9 * 20
    assert metrics["ttft_ms_p99"] == pytest.approx(29.8)
    assert metrics["tpot_ms_mean"] == pytest.approx(4)  # 2 and 6
    assert metrics["itl_ms_mean"] == pytest.approx(4)  # 1, 3, 4, 8
    assert metrics["itl_ms_p50"] == pytest.approx(3.5)
    assert metrics["e2e_ms_mean"] == pytest.approx(28)  # 14 and 42
    assert metrics["e2e_ms_p99"] == pytest.approx(41.72)  # 14 + 0.99 * 28


def test_inter_token_times_count_each_gap_and_not_each_request():
    rows = request_rows(client_line(2, itls=[[0.001] * 3, [0.009]], output_lens=[4, 2]), 2, 4)

    assert summarise(rows, 1.0)["itl_ms_mean"] == pytest.approx(3)  # (1 + 1 + 1 + 9) / 4
    assert summarise(rows, 1.0)["tpot_ms_mean"] == pytest.approx(5)  # (1 + 9) / 2


def test_without_a_success_nothing_was_measured():
    assert summarise(request_rows(client_line(2, failed=2), 2, 4), 2.0) == {
        "completed": 0,
        "failed": 2,
        "duration_s": 2.0,
    }


def test_one_token_answers_have_no_time_per_token_at_all():
    metrics = summarise(request_rows(client_line(2, tokens=1), 2, 1), 1.0)

    assert metrics["ttft_ms_mean"] == pytest.approx(10)
    assert not [name for name in metrics if name.startswith(("tpot", "itl"))]


@pytest.mark.parametrize("duration", [None, 0, 0.0])
def test_without_a_duration_there_are_latencies_but_no_rates(duration):
    metrics = summarise(request_rows(line(), 2, 4), duration)

    assert "output_tok_s" not in metrics
    assert metrics["ttft_ms_mean"] == pytest.approx(10)


# --- percentiles ---------------------------------------------------------------------------------

FINITE = st.floats(-1e9, 1e9)


@pytest.mark.parametrize(
    ("q", "want"), [(0, 10), (25, 17.5), (50, 25), (90, 37), (99, 39.7), (100, 40)]
)
def test_a_percentile_lies_between_its_neighbours(q, want):
    assert percentile([10, 20, 30, 40], q) == pytest.approx(want)


@given(values=st.lists(FINITE, min_size=1, max_size=40), q=st.integers(0, 100))
def test_a_percentile_is_numpy_s(values, q):
    wanted = float(np.percentile(values, q))

    assert percentile(sorted(values), q) == pytest.approx(wanted, rel=1e-9, abs=1e-6)


@given(values=st.lists(FINITE, min_size=1, max_size=40), q=st.integers(0, 99))
def test_percentiles_grow_with_q_and_stay_within_the_values(values, q):
    values = sorted(values)

    assert percentile(values, q) <= percentile(values, q + 1) + 1e-6
    assert values[0] - 1e-6 <= percentile(values, q) <= values[-1] + 1e-6
