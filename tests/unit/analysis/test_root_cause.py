"""What limits a point, word by word, from its numbers."""

from typing import Any

import pytest

from sgmatrix.analysis.root_cause import root_cause
from sgmatrix.present.ceilings import cause_text, share_text

CEILING = {
    "why_not": None,
    "practical_tpot_with_prefill_ms": 8.0,
    "hard_memory_ms": 5.0,
    "hard_compute_ms": 1.0,
    "hard_link_ms": 2.0,
    "tokens_per_expert": 1.5,
}


def cause(point: dict[str, Any], limit_w: float | None = None, **ceiling: Any) -> Any:
    return root_cause(point, {**CEILING, **ceiling}, limit_w)


def test_time_that_no_roof_explains_is_the_host() -> None:
    found = cause({"tpot_ms_mean": 80.0})
    assert found.limit == "host"
    assert found.unexplained_ms == 72.0
    assert found.unexplained_share == 0.9
    assert found.memory_share == 5 / 80


@pytest.mark.parametrize(
    ("changed", "limit"),
    [
        ({}, "kernels"),
        ({"hard_memory_ms": 7.0}, "memory"),
        ({"hard_compute_ms": 6.5}, "compute"),
        ({"hard_link_ms": 9.0}, "link"),
    ],
)
def test_a_roof_that_is_near(changed: dict[str, float], limit: str) -> None:
    assert cause({"tpot_ms_mean": 10.0}, **changed).limit == limit


def test_a_full_pool_comes_first() -> None:
    assert cause({"tpot_ms_mean": 80.0, "token_usage_max": 0.96}).limit == "kv_pool"
    assert cause({"tpot_ms_mean": 80.0, "token_usage_max": 0.94}).limit == "host"
    assert cause({"tpot_ms_mean": 80.0, "retracted": 1}).limit == "kv_pool"


def test_faster_than_the_practical_tier_leaves_nothing_unexplained() -> None:
    found = cause({"tpot_ms_mean": 7.0})
    assert (found.unexplained_ms, found.limit) == (0.0, "memory")


def test_power_as_a_share_of_all_limits() -> None:
    found = cause({"tpot_ms_mean": 10.0, "power_w_mean": 8 * 235.0}, 8 * 600.0)
    assert found.power_share == pytest.approx(0.39, abs=0.01)
    assert found.waits
    assert not cause({"tpot_ms_mean": 10.0, "power_w_mean": 8 * 400.0}, 8 * 600.0).waits
    assert cause({"tpot_ms_mean": 10.0, "power_w_mean": 400.0}).power_share is None


def test_nothing_is_said_without_a_number() -> None:
    assert cause({"tpot_ms_mean": None}) is None
    assert cause({"tpot_ms_mean": 5.0}, why_not="no facts") is None


def test_the_words_carry_their_numbers() -> None:
    found = cause({"tpot_ms_mean": 80.0, "power_w_mean": 235.0, "token_usage_max": 0.4}, 600.0)
    assert cause_text(found) == (
        "host overhead: no roof explains most of the step (72 ms of each token, 90 %, beyond the "
        "practical tier); roofs used: memory 6.2 %, compute 1.2 %, links 2.5 %; 1.5 tokens per "
        "expert; KV pool 40 % full; power 39 % of the limit, the GPUs wait"
    )


def test_roofs_that_are_not_known_are_left_out() -> None:
    found = cause({"tpot_ms_mean": 80.0}, hard_compute_ms=0.0, hard_link_ms=0.0)
    assert "roofs used: memory 6.2 %; 1.5 tokens" in cause_text(found)


def test_shares() -> None:
    assert [share_text(one) for one in (None, 0, 0.004, 0.0996, 0.1, 1.034)] == [
        "",
        "0 %",
        "0.4 %",
        "10.0 %",
        "10 %",
        "103 %",
    ]
