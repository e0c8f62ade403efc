"""A result against itself: each flag, and what does not raise it."""

import pytest

from sgmatrix.load.foreign.doubts import Doubt, doubts

GOOD = {
    "dataset": "random",
    "asked": 8,
    "completed": 8,
    "failed": 0,
    "input_len": 100,
    "output_len": 50,
    "input_tokens": 800,
    "output_tokens": 400,
    "output_tokens_retokenized": 400,
    "duration_s": 4.0,
    "output_tok_s": 100.0,
    "total_tok_s": 300.0,
    "request_s": 2.0,
    "ttft_ms_mean": 100.0,
    "ttft_ms_p50": 95.0,
    "ttft_ms_p90": 140.0,
    "ttft_ms_p99": 180.0,
    "tpot_ms_mean": 10.0,
    "itl_ms_mean": 10.0,
    "itl_ms_p50": 0.001,
    "e2e_ms_mean": 590.0,
    "e2e_ms_p50": 585.0,
    "e2e_ms_p99": 700.0,
    "concurrency_mean": 1.18,
}


def flags(**changes):
    return [one.flag for one in doubts({**GOOD, **changes})]


def why(**changes):
    (one,) = doubts({**GOOD, **changes})
    return one.why


def test_a_result_that_agrees_with_itself_has_no_flag():
    assert flags() == []


def test_what_is_not_known_speaks_against_nothing():
    needed = ("completed", "duration_s")

    assert doubts({name: GOOD[name] if name in needed else None for name in GOOD}) == []


@pytest.mark.parametrize(
    "changes", [{"failed": 1, "asked": 9}, {"asked": 9, "failed": None}, {"asked": 9, "failed": 1}]
)
def test_a_failure_makes_it_partial(changes):
    assert flags(**changes) == ["partial"]


def test_an_answer_of_nothing_makes_it_partial():
    assert doubts(GOOD, unanswered=1) == [
        Doubt("partial", "1 requests that count as completed brought no token or no text")
    ]


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"input_len": 105}, []),  # 100 is 4.8 % below
        ({"input_len": 106}, ["length_mismatch"]),
        ({"input_len": 200}, ["length_mismatch"]),  # uniform up to 200 is not 200
        ({"output_len": 48}, []),
        ({"output_len": 47}, ["length_mismatch"]),
        ({"output_len": None, "input_len": None}, []),
        ({"output_tokens_retokenized": 320}, []),
        ({"output_tokens_retokenized": 319}, ["length_mismatch"]),
        ({"output_tokens_retokenized": 500}, []),
        ({"output_tokens_retokenized": 501}, ["length_mismatch"]),
        ({"output_tokens_retokenized": 0}, ["length_mismatch"]),
    ],
)
def test_lengths_are_those_that_were_asked_for_and_counted_twice(changes, want):
    assert flags(**changes) == want


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"cached_share": 0.05}, []),
        ({"cached_share": 0.06}, ["cache_hits"]),
        ({"cached_share": 0.9, "dataset": "random-ids"}, ["cache_hits"]),
        ({"cached_share": 0.9, "dataset": "generated-shared-prefix"}, []),
        ({"cached_share": 0.9, "dataset": None}, []),
        ({"cached_share": 1.1}, ["cache_hits", "implausible"]),
    ],
)
def test_a_random_load_has_nothing_to_hit_in_the_cache(changes, want):
    assert flags(**changes) == want


@pytest.mark.parametrize(
    "changes",
    [
        {"output_tok_s": 104.9},
        {"output_tok_s": 95.1},
        {"total_tok_s": 314.0},
        {"request_s": 2.09},
        {"concurrency_mean": 1.23},
        {"e2e_ms_p99": 4_100.0},  # of a run of 4 s, within its 5 %
    ],
)
def test_small_disagreements_are_no_contradiction(changes):
    assert flags(**changes) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"output_tok_s": 105.5},
        {"output_tok_s": 94.0},
        {"output_tok_s": 4_008_080.0},
        {"output_tok_s": 4_008_080.0, "output_tokens": None},  # with nothing to hold it against
        {"output_tok_s": -100.0, "output_tokens": None},
        {"total_tok_s": 330.0},
        {"request_s": 2.2},
        {"completed": 9, "failed": None, "request_s": 2.25, "output_len": 45, "input_len": None},
        {"failed": 0, "asked": 10, "completed": 8},
        {"e2e_ms_p99": 4_300.0},
        {"ttft_ms_p99": 4_300.0, "e2e_ms_p99": None},
        {"ttft_ms_p50": 586.0, "ttft_ms_p90": None, "ttft_ms_p99": None},  # above its E2E
        {"ttft_ms_p90": 90.0},  # below p50
        {"ttft_ms_p90": None, "ttft_ms_p99": 90.0},
        {"ttft_ms_mean": 0.032},  # seconds under a name in ms
        {"tpot_ms_mean": 0.0179},
        {"e2e_ms_mean": 0.59, "ttft_ms_mean": None},  # not by its range: by the concurrency
        {"concurrency_mean": 4.0},  # 2 requests/s of 0.59 s are 1.18 in flight
        {"tpot_ms_mean": -1.0},
        {"itl_ms_p50": -0.001},
        {"duration_s": 0.0, "output_tok_s": None, "total_tok_s": None, "request_s": None},
        {"request_rate": -1.0},
        # one token each, and yet time between tokens
        {"output_tokens": 8, "output_tok_s": 2.0, "total_tok_s": 202.0},
    ],
)
def test_what_cannot_be_is_implausible(changes):
    assert "implausible" in flags(**changes)
    assert flags(**changes)[-1] == "implausible"


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"asked": 10, "failed": 2}, "8 of 10 requests completed"),
        ({"input_len": 200}, "100 input tokens per request, 200 were asked for"),
        (
            {"output_tokens_retokenized": 4},
            "400 output tokens were counted, their text has 4",
        ),
        ({"cached_share": 0.5}, "50.0 % of the prompt tokens came from the prefix cache"),
        ({"request_s": 3.0}, "request_s is 3, its counts say 8 in 4 s"),
        ({"tpot_ms_mean": 0.0179}, "tpot_ms_mean is 0.0179, possible is 0.05 to 3.6e+06"),
        (
            {"concurrency_mean": 4.0},
            "E2E and duration say 1.18 requests in flight, the tool 4",
        ),
        ({"e2e_ms_p99": 4300.0}, "e2e of 4300 ms in a run of 4000 ms"),
        ({"ttft_ms_p90": 90.0}, "percentiles of ttft fall"),
        ({"e2e_ms_p50": 94.0}, "p50 TTFT is above E2E"),
        ({"asked": 7, "failed": None}, "8 requests completed, 7 were asked"),
    ],
)
def test_each_flag_says_why_with_its_numbers(changes, want):
    assert why(**changes) == want


def test_values_that_were_impossible_make_it_implausible():
    assert doubts(GOOD, impossible=["ttft_ms_p50", "itl_ms_p50"]) == [
        Doubt("implausible", "ttft_ms_p50 was 0 or infinite; itl_ms_p50 was 0 or infinite")
    ]


def test_without_a_success_lengths_say_nothing():
    nothing = dict.fromkeys(GOOD) | {"completed": 0, "duration_s": 1.0, "output_tokens": 0}

    assert doubts(nothing | {"output_len": 50, "output_tok_s": 0.0}) == []


def test_flags_add_up_in_the_order_of_our_own():
    assert flags(asked=9, failed=1, cached_share=0.5, input_len=1, request_s=9.0) == [
        "partial",
        "cache_hits",
        "length_mismatch",
        "implausible",
    ]
