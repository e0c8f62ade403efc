"""What a client's line can hold that is no measurement: it never becomes a number of ours."""

import math

import pytest

from builders import client_line
from sgmatrix.load.result import request_rows, summarise


def metrics(line, output_len=4):
    return summarise(request_rows(line, len(line["errors"]), output_len), line["duration"])


RATES = ("output_tok_s", "total_tok_s", "request_s")


@pytest.mark.parametrize("ttft", [0.0, math.nan, None])
@pytest.mark.parametrize("duration", [0.0, 0.4, math.nan, None])
def test_no_success_gives_counts_and_nothing_else(ttft, duration):
    line = client_line(3, failed=3, ttfts=[ttft] * 3, duration_s=duration)

    found = metrics(line)

    assert (found.pop("completed"), found.pop("failed")) == (0, 3)
    assert found.keys() == {"duration_s"}


def test_one_token_among_longer_answers_has_no_part_in_the_time_per_token():
    found = metrics(client_line(2, output_lens=[1, 4], itls=[[], [0.002, 0.003, 0.004]]))

    assert found["tpot_ms_mean"] == found["tpot_ms_p99"] == pytest.approx(3)
    assert found["ttft_ms_mean"] == pytest.approx(10)
    assert found["output_tok_s"] == pytest.approx(10)  # 5 tokens in 0.5 s


def test_a_request_that_failed_brings_no_zero_into_the_latencies():
    found = metrics(client_line(4, failed=2))

    assert found["ttft_ms_p50"] == pytest.approx(10)
    assert found["e2e_ms_mean"] == pytest.approx(16)


def test_an_answer_without_a_usage_block_has_the_tokens_that_the_client_credited():
    # the client keeps the length that was asked for; its own lists cannot tell it from the truth
    found = metrics(client_line(2, tokens=128, itls=[[0.002] * 2] * 2), output_len=128)

    assert found["output_tok_s"] == pytest.approx(512)
    assert found["itl_ms_mean"] / found["tpot_ms_mean"] == pytest.approx(63.5)  # 127 / 2


@pytest.mark.parametrize("column", ["output_lens", "input_lens", "itls"])
def test_a_request_with_a_null_is_not_ok_and_the_others_are_kept(column):
    line = client_line(2)
    line[column] = [None, line[column][1]]

    found = metrics(line)

    assert (found["completed"], found["failed"]) == (1, 1)


def test_an_answer_in_one_piece_has_no_time_per_token():
    found = metrics(client_line(2, itls=[[], []]))

    assert found["e2e_ms_mean"] == pytest.approx(10)
    assert not [name for name in found if name.startswith(("tpot", "itl"))]


@pytest.mark.parametrize("duration", [math.nan, math.inf, -1.0])
def test_a_duration_that_is_none_gives_no_rate(duration):
    found = metrics(client_line(2, duration_s=duration))

    assert not found.keys() & set(RATES)
    assert found["duration_s"] is None


@pytest.mark.parametrize("gap", [math.nan, math.inf])
def test_a_gap_that_is_no_number_makes_no_metric(gap):
    found = metrics(client_line(2, itls=[[gap] * 3, [0.002] * 3]))

    assert all(math.isfinite(value) for value in found.values())
