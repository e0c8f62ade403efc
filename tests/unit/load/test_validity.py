"""Each validity flag: what raises it, what does not, and what it says."""

import pytest

from builders import client_line
from judged import LIMITS, evidence, flags, why
from sgmatrix.load.evidence import Surroundings
from sgmatrix.load.validity import findings, validity_columns


def test_a_clean_point_has_no_flag():
    assert flags() == []
    assert validity_columns([]) == {"validity": "valid", "validity_detail": None}


# --- partial, lengths, latencies ------------------------------------------------------------------


def test_a_request_that_failed_makes_the_point_partial():
    assert flags(client_line(8, failed=1)) == ["partial"]
    assert why(client_line(8, failed=1)) == "1 of 8 requests failed"


@pytest.mark.parametrize(("share", "want"), [(0.75, []), (0.76, ["partial"])])
def test_how_many_may_fail_is_the_campaign_s_to_say(share, want):
    assert flags(client_line(8, failed=2), {"min_completed_share": share}) == want


def test_exactly_the_share_that_is_asked_for_is_enough():
    # 0.55 * 100 is 55.00000000000001, and 0.29 * 100 is 28.999999999999996
    assert flags(client_line(100, failed=45, duration_s=5), {"min_completed_share": 0.55}) == []
    line = client_line(2, tokens=129)
    assert flags(line, {"length_tolerance": 0.29}, output_len=100) == []


@pytest.mark.parametrize(
    ("lengths", "want"),
    [
        ([100, 100], []),
        ([95, 95], []),  # 5 % below is within the tolerance
        ([94, 94], ["length_mismatch"]),
        ([105, 105], []),
        ([106, 106], ["length_mismatch"]),
        ([92, 98], ["length_mismatch"]),  # 5 % in the mean is not enough
        ([50, 150], ["length_mismatch"]),
        ([3, 3], ["length_mismatch"]),
    ],
)
def test_lengths_are_compared_one_by_one(lengths, want):
    itls = [[0.002] * (tokens - 1) for tokens in lengths]
    line = client_line(2, tokens=100, output_lens=lengths, itls=itls)

    assert flags(line, output_len=100) == want


def test_only_the_lengths_of_ok_requests_count():
    assert flags(client_line(4, failed=2)) == ["partial"]


def test_prompts_of_another_length_than_was_asked_are_a_mismatch():
    assert why(client_line(8, input_len=8)) == "prompts had 8 tokens, 16 were asked for"
    assert flags(client_line(8, input_len=8), point={"dataset": "topical"}) == []


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"itls": [[], []]}, ["implausible"]),  # 4 tokens in no time after the first
        ({"itls": [[0.0] * 3, [0.002] * 3]}, ["implausible"]),
        ({"itls": [[-0.02], [0.002]]}, ["implausible"]),  # ended before it began
        ({"itls": [[-0.001], [0.002]]}, ["implausible"]),  # first token after the last
        ({"itls": [[0.001, 0.001, 0.004], [0.002] * 3]}, []),  # several tokens in one chunk
    ],
)
def test_latencies_that_cannot_be_are_implausible(changes, want):
    assert flags(client_line(2, **changes)) == want


@pytest.mark.parametrize(("held", "want"), [(6, []), (7, ["implausible"])])
def test_a_first_piece_of_many_tokens_makes_tpot_too_low(held, want):
    """127 tokens after the first one, 20 ms apart, of which the first piece held some."""
    line = client_line(8, tokens=128, itls=[[0.02] * (127 - held)] * 8, duration_s=10)

    assert flags(line, output_len=128) == want


def test_a_first_piece_of_many_tokens_is_told_with_both_times():
    line = client_line(8, tokens=128, itls=[[0.02] * 64] * 8, duration_s=5.5)

    assert why(line, output_len=128) == (
        "TPOT is 10.1 ms, and tokens came 20 ms apart: the first pieces held many"
    )


def test_an_answer_of_one_token_is_plausible_without_a_time_per_token():
    assert flags(client_line(2, tokens=1), output_len=1) == []


@pytest.mark.parametrize(("duration_s", "want"), [(0.062, []), (0.06, ["implausible"])])
def test_more_requests_in_flight_than_were_allowed_cannot_be(duration_s, want):
    # 8 requests of 16 ms are 128 ms of work: at most 2.1 at once
    assert flags(client_line(8, duration_s=duration_s)) == want


@pytest.mark.parametrize(("peak", "want"), [(45.8, []), (45.7, ["implausible"])])
def test_more_tokens_than_the_server_s_steps_allow_cannot_be(peak, want):
    view = {
        "decode_lines": 4,
        "rank_lines": 4,
        "peak_output_tok_s": peak,
    }  # 48 tok/s after the first ones

    assert flags(view=view) == want


@pytest.mark.parametrize(("rank_lines", "want"), [(3, []), (4, ["implausible"])])
def test_a_rank_that_logged_little_speaks_of_no_peak(rank_lines, want):
    view = {"decode_lines": 32, "rank_lines": rank_lines, "peak_output_tok_s": 32.0}

    assert flags(view=view) == want


# --- cache, warm-up, surroundings -----------------------------------------------------------------


def test_a_cache_that_was_not_emptied_may_have_hit():
    assert flags(cache_flushed=False) == ["cache_hits"]


@pytest.mark.parametrize(
    ("dataset", "share", "want"),
    [
        ("topical", 0.01, []),
        ("topical", 0.011, ["cache_hits"]),
        ("random-ids", 0.2, ["cache_hits"]),
        ("shared-prefix", 0.8, []),  # that is what it is for
        ("custom", 0.3, []),
    ],
)
def test_prompts_from_the_cache_are_counted_by_the_server(dataset, share, want):
    assert flags(point={"dataset": dataset}, view={"cached_share": share}) == want


@pytest.mark.parametrize(
    ("requests", "vocab_size", "share", "want"),
    [
        # 12,288 of 151,936 first ids: 3.94 % repeat, +- 2 x 0.18 %, and 1 % is allowed
        (12_288, 151_936, 0.0529, []),
        (12_288, 151_936, 0.0531, ["cache_hits"]),
        (64, 151_936, 0.0138, []),  # 0.02 + 0.36 + 1 %
        (64, 151_936, 0.0139, ["cache_hits"]),
        (512, 1024, 0.267, []),  # 21.31 + 4.42 + 1 %
        (512, 1024, 0.268, ["cache_hits"]),
    ],
)
def test_random_prompts_repeat_by_chance(requests, vocab_size, share, want):
    line = client_line(requests, duration_s=requests / 120)

    assert flags(line, vocab_size=vocab_size, view={"cached_share": share}) == want


def test_of_prompts_about_topics_none_repeats_by_chance():
    line = client_line(12_288, duration_s=100)
    topical = {"dataset": "topical"}

    assert flags(line, point=topical, view={"cached_share": 0.02}) == ["cache_hits"]
    assert flags(line, view={"cached_share": 0.02}) == []


def test_a_server_that_was_not_warm_is_cold():
    assert why(cold="there was no warm-up") == "there was no warm-up"
    assert flags(cold="there was no warm-up") == ["cold"]


@pytest.mark.parametrize(
    ("around", "want"),
    [
        (Surroundings(foreign_share=0.1), []),
        (Surroundings(foreign_share=0.11), ["foreign_load"]),
        (Surroundings(foreign_pids=[41]), ["foreign_load"]),
        (Surroundings(throttled={"sw_thermal": 0.05, "sw_power_cap": 1.0}), []),
        (Surroundings(throttled={"sw_thermal": 0.06}), ["throttled"]),
        (Surroundings(throttled={"hw_power_brake": 0.5}), ["throttled"]),
        (Surroundings(coverage={"host": 0.5, "gpu 0": 1.0}), []),
        (Surroundings(coverage={"host": 1.0, "gpu 0": 0.4}), ["no_telemetry"]),
    ],
)
def test_what_telemetry_saw_of_the_machine(around, want):
    assert flags(surroundings=around) == want


def test_missing_samples_are_told_with_why_the_sampler_had_none():
    around = Surroundings(
        coverage={"host": 1.0, "gpu 0": 0.0},
        errors=("gpu 1: GpuIsLost", "gpu 0: NoPermission (Insufficient Permissions)"),
    )

    assert why(surroundings=around) == (
        "0 % of the samples of gpu 0: gpu 0: NoPermission (Insufficient Permissions)"
    )


def test_a_short_answer_beside_an_error_in_the_log_is_no_answer():
    line = client_line(4, output_lens=[4, 4, 4, 2])

    assert flags(line) == ["length_mismatch"]
    found = findings(evidence(line, stream_errors=("boom", "bang")), LIMITS)
    assert [one.flag for one in found] == ["length_mismatch", "implausible"]
    assert found[1].why == (
        "1 answers with HTTP 200 ended early, and the server logged 2 errors, the first: boom"
    )
    assert flags(stream_errors=("boom",)) == []  # of a request that the client saw fail, or none


def test_flags_add_up_in_the_order_of_the_list_and_each_says_why():
    line = client_line(4, failed=1, output_lens=[2, 2, 2, 0], itls=[[], [0.1], [0.1], []])
    found = findings(
        evidence(line, cache_flushed=False, cold="there was no warm-up"),
        LIMITS,
    )

    columns = validity_columns(found)
    assert columns["validity"] == "partial,cold,cache_hits,length_mismatch,implausible"
    assert columns["validity_detail"].split(" | ")[:2] == [
        "partial: 1 of 4 requests failed",
        "cold: there was no warm-up",
    ]
