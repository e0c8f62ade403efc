"""What is true of a load, from when its tokens were sent; worked out by hand."""

import pytest

from perf.lockstep.truth import Errors, Truth, errors_of, truth_of
from sgmatrix.core.errors import SgmatrixError


def test_every_figure_of_two_requests_is_that_worked_out_by_hand(record):
    # gaps of 100, 100, 100 and of 50, 150, 110: five zeros and a half of a rank below the largest
    truth = truth_of(record((0, 200, 300, 400, 500), (100, 220, 270, 420, 530)))

    assert truth.requests == 2 and truth.tokens == 8
    assert truth.ttft_ms == pytest.approx((200 + 120) / 2)
    assert truth.tpot_ms == pytest.approx((300 / 3 + 310 / 3) / 2)
    # rank 0.99 * 5 = 4.95 of the sorted gaps 50, 100, 100, 100, 110, 150
    assert truth.itl_p99_ms == pytest.approx(110 + 0.95 * 40)
    # in flight 500 and 430 ms of the 530 from the first arrival to the last token
    assert truth.concurrency == pytest.approx(930 / 530)


def test_requests_that_are_all_there_at_once_are_the_concurrency(record):
    assert truth_of(record(*[(0, 100, 200)] * 5)).concurrency == 5


def test_a_request_that_was_cut_short_voids_the_record(record):
    with pytest.raises(SgmatrixError, match="1 of 1 requests got not all") as caught:
        truth_of(record((0, 100, 200), asked=3))

    assert caught.value.code == "cut_short"


@pytest.mark.parametrize("requests", [[], [(0, 100)]], ids=["none", "one token"])
def test_a_load_without_gaps_has_no_truth(record, requests):
    with pytest.raises(SgmatrixError, match="cut_short"):
        truth_of(record(*requests))


TRUTH = Truth(4, 32, ttft_ms=200.0, tpot_ms=100.0, itl_p99_ms=101.0, concurrency=4)
REPORTED = {"completed": 4, "ttft_ms_mean": 207.5, "tpot_ms_mean": 99.0, "itl_ms_p99": 103.5}


def test_an_error_is_what_was_reported_less_the_truth():
    assert errors_of(TRUTH, REPORTED) == Errors(
        ttft_ms=7.5, tpot_percent=pytest.approx(-1.0), itl_p99_ms=2.5
    )


@pytest.mark.parametrize("wrong", [{"completed": 3}, {"ttft_ms_mean": None}, {"itl_ms_p99": None}])
def test_a_report_of_another_load_has_no_error(wrong):
    with pytest.raises(SgmatrixError, match="4 were served") as caught:
        errors_of(TRUTH, REPORTED | wrong)

    assert caught.value.code == "client_crash"
