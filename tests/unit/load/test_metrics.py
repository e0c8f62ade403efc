"""Derived metrics of made-up points, worked out by hand."""

import pytest

from builders import client_line
from sgmatrix.load.evidence import Surroundings
from sgmatrix.load.metrics import derived, mean_concurrency
from sgmatrix.load.result import request_rows, summarise
from sgmatrix.load.serverview import ServerView

SILENT = ServerView(**dict.fromkeys(ServerView.__dataclass_fields__) | {"decode_lines": 0})
CLOSED = {"concurrency": 2, "request_rate": None}


def metrics(line, *, point=CLOSED, view=SILENT, around=None, gpus=0):
    rows = request_rows(line, len(line["errors"]), 4)
    basic = summarise(rows, line["duration"])
    return derived(point, rows, basic, view, around or Surroundings(), gpus)


def test_little_s_law_gives_the_mean_concurrency():
    rows = request_rows(client_line(8), 8, 4)  # 16 ms each

    assert mean_concurrency(rows, 0.064) == pytest.approx(2.0)
    assert mean_concurrency(rows, None) is None


def test_how_long_a_failed_request_was_in_flight_is_not_known():
    assert metrics(client_line(8, failed=1))["concurrency_mean"] is None


def test_speed_of_a_user_and_of_a_gpu():
    found = metrics(client_line(8), gpus=4)  # 32 tokens in 0.5 s, 2 ms per token

    assert found["tok_s_per_user"] == pytest.approx(500.0)
    assert found["output_tok_s_per_gpu"] == 16.0
    assert metrics(client_line(8))["output_tok_s_per_gpu"] is None


def test_one_token_has_no_speed():
    assert metrics(client_line(8, tokens=1))["tok_s_per_user"] is None


@pytest.mark.parametrize(
    ("slo", "good"),
    [
        ({"ttft_ms": 10.0}, 8),  # to keep it is enough
        ({"ttft_ms": 9.9}, 0),
        ({"ttft_ms": 10.0, "e2e_ms": 15.9}, 0),  # all of them
        ({"tpot_ms": 2.0}, 8),
    ],
)
def test_goodput_counts_requests_that_kept_the_whole_objective(slo, good):
    found = metrics(client_line(8), point=CLOSED | {"slo": slo})

    assert (found["goodput_request_s"], found["good_share"]) == (good / 0.5, good / 8)


def test_a_failed_request_is_not_good_and_still_counts():
    found = metrics(client_line(8, failed=2), point=CLOSED | {"slo": {"ttft_ms": 99.0}})

    assert (found["goodput_request_s"], found["good_share"]) == (12.0, 0.75)
    assert found["slo"] == "ttft_ms <= 99"


def test_without_an_objective_there_is_no_goodput():
    found = metrics(client_line(8))

    assert (found["goodput_request_s"], found["good_share"], found["slo"]) == (None, None, None)


def test_a_single_token_has_no_tpot_to_keep():
    found = metrics(client_line(8, tokens=1), point=CLOSED | {"slo": {"tpot_ms": 0.1}})

    assert found["good_share"] == 1.0


def test_the_steady_part_is_of_the_closed_loop_alone():
    line = client_line(4, duration_s=0.032)  # two waves of two, 16 ms each

    assert metrics(line)["steady_share"] == pytest.approx(1.0)
    assert metrics(line)["steady_output_tok_s"] == pytest.approx(16 / 0.032)
    opened = {"concurrency": None, "request_rate": 5.0}
    assert metrics(line, point=opened)["steady_output_tok_s"] is None


def test_energy_is_per_token_of_ok_requests():
    around = Surroundings(energy_j=60.0, power_w_mean=120.0, power_idle_w=30.0)
    found = metrics(client_line(8, failed=3), around=around)

    assert found["energy_j_per_output_tok"] == 3.0  # 20 tokens
    assert (found["power_w_mean"], found["power_idle_w"]) == (120.0, 30.0)
    assert metrics(client_line(8))["energy_j_per_output_tok"] is None
