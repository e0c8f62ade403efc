"""What is offered for a load point, and for a warm-up wave in its shapes."""

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.load.offer import in_flight, pilot_offer, point_offer, wave_offer

POINT = {
    "load_id": "c0004-i16-o8-random-ids",
    "dataset": "random-ids",
    "concurrency": 4,
    "request_rate": None,
    "max_concurrency": None,
    "burstiness": 1.0,
    "input_len": 16,
    "output_len": 8,
    "requests": 32,
    "duration_s": None,
    "min_requests": 8,
    "prompts": {},
    "seed": 7,
}
RATE = POINT | {"concurrency": None, "request_rate": 2.5, "max_concurrency": 64, "burstiness": 0.5}


def test_a_closed_loop_offers_its_requests_at_its_concurrency():
    offer = point_offer(POINT, {})

    assert (offer.concurrency, offer.requests, offer.seed) == (4, 32, 7)
    assert (offer.request_rate, offer.burstiness, offer.connections) == (None, 1.0, 4)


def test_an_open_loop_offers_a_rate_with_a_bound_or_none():
    offer = point_offer(RATE, {})
    assert (offer.request_rate, offer.concurrency, offer.burstiness) == (2.5, 64, 0.5)

    free = point_offer(RATE | {"max_concurrency": None}, {})
    assert (free.concurrency, free.connections) == (None, 32)
    assert in_flight(RATE | {"max_concurrency": None}) is None


@pytest.mark.parametrize(
    ("wave", "width", "requests"),
    [({"concurrency": 4}, None, None), ({"concurrency": 16}, 4, 4), ({"concurrency": 1}, 4, 4)],
)
def test_a_duration_asks_for_a_wave_at_its_own_concurrency(wave, width, requests):
    point = POINT | {"requests": None, "duration_s": 30.0}

    pilot = pilot_offer(point, {"request_s": 10.0} | wave)

    assert (pilot and pilot.concurrency, pilot and pilot.requests) == (width, requests)
    assert pilot is None or pilot.seed == 1007  # other prompts than the measured ones
    assert pilot_offer(POINT, {"concurrency": 16}) is None  # the number is given
    assert pilot_offer(point | {"concurrency": 1}, {"concurrency": 16}).requests == 2


def test_a_duration_takes_what_a_wave_says():
    point = POINT | {"requests": None, "duration_s": 30.0}

    assert point_offer(point, {"request_s": 10.0, "concurrency": 4}).requests == 300
    with pytest.raises(SgmatrixError, match="the last wave ran 16 requests at once"):
        point_offer(point, {"request_s": 10.0, "concurrency": 16})


def test_a_duration_has_at_least_the_requests_that_are_asked_for():
    point = POINT | {"requests": None, "duration_s": 0.1}

    assert point_offer(point, {"request_s": 1.0, "concurrency": 4}).requests == 8


def test_without_a_wave_a_duration_is_no_number_of_requests():
    point = POINT | {"requests": None, "duration_s": 30.0}

    with pytest.raises(SgmatrixError, match="how many requests take 30 s") as caught:
        point_offer(point, {"waves_tok_s": []})

    assert caught.value.code == "client_setup"


def test_groups_of_prompts_are_whole():
    point = POINT | {"prompts": {"groups": 5, "prefix_len": 8}, "requests": 11}

    assert point_offer(point, {}).requests == 15


def test_a_wave_is_the_hardest_point_all_at_once_with_other_prompts():
    wave = wave_offer([POINT, POINT | {"concurrency": 16, "seed": 9}, RATE | {"seed": 1}], 2)

    # the rate may have 64 in flight
    assert (wave.concurrency, wave.requests, wave.request_rate) == (64, 64, None)
    assert wave.seed == 1 + 1 + 2
    closed = wave_offer([POINT, POINT | {"concurrency": 16, "seed": 9}], 0)
    assert (closed.concurrency, closed.requests, closed.seed) == (16, 16, 10)


@pytest.mark.parametrize(("rate", "width"), [(0.5, 8), (20.2, 21), (1e4, 256)])
def test_a_rate_without_a_bound_is_warmed_up_at_a_width_of_its_own(rate, width):
    wave = wave_offer([RATE | {"max_concurrency": None, "request_rate": rate}], 0)

    assert (wave.concurrency, wave.requests) == (width, width)
