"""Each validity flag, and what does not raise it."""

import pytest

from builders import client_line
from sgmatrix.load.result import request_rows
from sgmatrix.load.validity import validity_flags


def flags(line, *, output_len=4, flushed=True, warm=True):
    rows = request_rows(line, len(line["errors"]), output_len)
    return validity_flags(rows, cache_flushed=flushed, warm=warm)


def test_a_clean_point_has_no_flag():
    assert flags(client_line(8)) == []


def test_a_request_that_failed_makes_the_point_partial():
    assert flags(client_line(8, failed=1)) == ["partial"]


def test_a_cache_that_was_not_emptied_may_have_hit():
    assert flags(client_line(8), flushed=False) == ["cache_hits"]


def test_a_server_that_was_not_warmed_up_is_cold():
    assert flags(client_line(8), warm=False) == ["cold"]


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
    line = client_line(2, tokens=100, output_lens=lengths)

    assert flags(line, output_len=100) == want


def test_only_the_lengths_of_ok_requests_count():
    assert flags(client_line(4, failed=2)) == ["partial"]


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"itls": [[], []]}, ["implausible"]),  # 4 tokens in no time after the first
        ({"itls": [[0.0] * 3, [0.002] * 3]}, ["implausible"]),
        ({"itls": [[-0.02], [0.002]]}, ["implausible"]),  # ended before it began
        ({"itls": [[-0.001], [0.002]]}, ["implausible"]),  # first token after the last
        ({"itls": [[0.006], [0.002] * 3]}, []),  # several tokens in one chunk
    ],
)
def test_latencies_that_cannot_be_are_implausible(changes, want):
    assert flags(client_line(2, **changes)) == want


def test_an_answer_of_one_token_is_plausible_without_a_time_per_token():
    assert flags(client_line(2, tokens=1), output_len=1) == []


def test_flags_add_up():
    line = client_line(4, failed=1, output_lens=[2, 2, 2, 0], itls=[[], [0.1], [0.1], []])

    assert flags(line, flushed=False, warm=False) == [
        "partial",
        "cold",
        "cache_hits",
        "length_mismatch",
        "implausible",
    ]
