"""When the requests of a closed loop began, and its steady part; worked out by hand."""

import pytest

from sgmatrix.load.timeline import start_times_s, steady_part


def row(ttft_s, *gaps_s, tokens=None):
    """A request of one token per chunk."""
    return {
        "ok": True,
        "ttft_ms": 1e3 * ttft_s,
        "itl_ms": [1e3 * gap for gap in gaps_s],
        "e2e_ms": 1e3 * (ttft_s + sum(gaps_s)),
        "output_tokens": tokens or 1 + len(gaps_s),
    }


def test_each_request_takes_the_next_place_that_is_free():
    # two places; the second request ends first, then the first, then the third
    assert start_times_s([3.0, 1.0, 4.0, 1.0, 2.0], 2) == [0.0, 0.0, 1.0, 3.0, 4.0]


def test_one_stream_is_one_after_the_other():
    assert start_times_s([1.0, 2.0, 3.0], 1) == [0.0, 1.0, 3.0]


def test_the_steady_part_leaves_out_what_ran_alone():
    # 0..2 both run, 2..4 only the first: tokens at 1, 2, 3, 4 and at 1, 2
    rows = [row(1.0, 1.0, 1.0, 1.0), row(1.0, 1.0)]

    steady = steady_part(rows, 2, 4.0)

    assert (steady.seconds, steady.share) == (2.0, 0.5)
    assert steady.output_tok_s == 2.0  # four tokens in two seconds


def test_a_single_stream_is_steady_from_its_begin_to_its_end():
    steady = steady_part([row(0.5, 0.5), row(0.5, 0.5)], 1, 2.0)

    assert (steady.seconds, steady.share, steady.output_tok_s) == (2.0, 1.0, 2.0)


def test_a_time_below_95_percent_of_the_load_is_not_steady():
    # of 20 requests one ends at 1: 19 are 95 %; then two more at 2
    rows = [row(1.0), row(2.0), row(2.0), *[row(4.0)] * 17]

    assert steady_part(rows, 20, 4.0).seconds == 2.0


def test_chunks_share_the_tokens_of_a_request():
    # 10 tokens in 2 chunks, at 1 and at 3; the other request ends at 2
    rows = [row(1.0, 2.0, tokens=10), row(1.0, 1.0)]

    assert steady_part(rows, 2, 3.0).output_tok_s == (5 + 2) / 2.0


@pytest.mark.parametrize(("duration_s", "known"), [(4.0, True), (4.07, True), (4.2, False)])
def test_a_course_that_does_not_end_when_the_client_did_is_not_told(duration_s, known):
    rows = [row(1.0, 1.0, 1.0, 1.0), row(1.0, 1.0)]

    assert (steady_part(rows, 2, duration_s) is not None) is known


def test_a_failed_request_hides_the_course():
    rows = [row(1.0), {"ok": False}]

    assert steady_part(rows, 2, 1.0) is None
    assert steady_part([], 2, 1.0) is None
