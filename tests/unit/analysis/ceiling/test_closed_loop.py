"""Whole load points: prompts, caps of the pool and of the server, replicas."""

import dataclasses

import pytest

from ceiling_facts import GLM5, H200, QWEN3, RTX
from sgmatrix.analysis.ceiling.capacity import Pool, kv_pool
from sgmatrix.analysis.ceiling.closed_loop import Server, ceiling, running_requests
from sgmatrix.analysis.ceiling.forward import Routing
from sgmatrix.analysis.ceiling.links import Tier
from sgmatrix.analysis.ceiling.parallel import Parallel
from sgmatrix.analysis.ceiling.points import point_ceiling

TP8 = Server(GLM5, RTX, Parallel(tp=8))
ONE = Server(QWEN3, H200, Parallel())


@pytest.mark.parametrize(
    ("concurrency", "input_len", "hard", "practical"),
    [
        (1, 256, 185, 129),
        (2, 256, 318, 222),
        (256, 256, 3957, 2399),
        (512, 256, 5294, 2877),
        (1024, 256, 6199, 3187),
        (2048, 256, 6199, 3368),
        (1, 128, 186, 131),
        (256, 128, 5210, 3124),
        (2048, 128, 9283, 4977),
    ],
)
def test_glm5_cells(concurrency: int, input_len: int, hard: float, practical: float) -> None:
    for tier, expected in (("hard", hard), ("practical", practical)):
        got = ceiling(
            TP8,
            tier,  # type: ignore[arg-type]
            concurrency=concurrency,
            input_len=input_len,
            output_len=128,
        )
        assert got.output_tok_s == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    ("concurrency", "hard", "practical"),
    [(1, 729, 619), (16, 1866, 1584), (64, 4728, 4005), (1024, 33220, 25778)],
)
def test_qwen3_cells(concurrency: int, hard: float, practical: float) -> None:
    for tier, expected in (("hard", hard), ("practical", practical)):
        got = ceiling(
            ONE,
            tier,  # type: ignore[arg-type]
            concurrency=concurrency,
            input_len=256,
            output_len=128,
        )
        assert got.output_tok_s == pytest.approx(expected, rel=0.01)


def test_throughput_and_tpot_agree() -> None:
    got = ceiling(TP8, "practical", concurrency=512, input_len=256, output_len=128)
    prefill_s = 512 * 256 / got.prefill_tok_s
    assert 512 * 128 / got.output_tok_s == pytest.approx(127 * got.tpot_s + prefill_s)
    others_s = 128 * (got.tpot_with_prefill_s - got.tpot_s)
    assert others_s == pytest.approx(511 / 512 * prefill_s)
    assert got.tpot_s < got.tpot_with_prefill_s


@pytest.mark.parametrize(("fraction", "tokens"), [(0.85, 245_000), (0.92, 315_000)])
def test_pool_of_the_reference(fraction: float, tokens: int) -> None:
    """A smaller fraction is a smaller pool; weights as published, 57.06 GiB."""
    pool = kv_pool(GLM5, RTX, Parallel(tp=8), fraction, weight_bytes=57.06 * 2**30)
    assert pool is not None
    assert pool.tokens == pytest.approx(tokens, rel=0.002)


def test_pool_of_dp_attention_is_that_of_all_groups() -> None:
    groups = Parallel(tp=8, ep=8, dp=8, dp_attention=True)
    pool = kv_pool(GLM5, RTX, groups, 0.92)
    assert pool is not None
    assert pool.tokens == pytest.approx(959_000, rel=0.01)


def test_weights_that_do_not_fit_leave_no_pool() -> None:
    pool = kv_pool(GLM5, RTX, Parallel(tp=4), 0.92)
    assert pool is not None
    assert pool.tokens == 0
    assert pool.device_bytes is not None
    assert pool.device_bytes < 0
    assert kv_pool(GLM5, dataclasses.replace(RTX, memory_bytes=None), Parallel(tp=8), 0.9) is None


def test_the_pool_and_the_server_cap_what_runs() -> None:
    assert running_requests(TP8, 2048, 256, 128) == 2048
    pooled = dataclasses.replace(TP8, pool=Pool(None, 32_000))
    assert running_requests(pooled, 2048, 256, 128) == 100
    capped = dataclasses.replace(pooled, max_running=64)
    assert running_requests(capped, 2048, 256, 128) == 64
    got = ceiling(capped, "hard", concurrency=2048, input_len=256, output_len=128)
    assert got.output_tok_s == (
        ceiling(TP8, "hard", concurrency=64, input_len=256, output_len=128).output_tok_s
    )


def test_replicas_add_up() -> None:
    two = dataclasses.replace(ONE, parallel=Parallel(dp=2))
    both = ceiling(two, "practical", concurrency=32, input_len=256, output_len=128)
    alone = ceiling(ONE, "practical", concurrency=16, input_len=256, output_len=128)
    assert both.output_tok_s == pytest.approx(2 * alone.output_tok_s)
    assert both.tpot_s == alone.tpot_s


def test_cached_prompts_are_not_prefilled() -> None:
    def rate(share: float, tier: Tier = "hard") -> float:
        return ceiling(
            ONE, tier, concurrency=64, input_len=2048, output_len=16, cached_share=share
        ).output_tok_s

    assert rate(0.0) < rate(0.5) < rate(1.0)
    whole = ceiling(ONE, "hard", concurrency=64, input_len=2048, output_len=16, cached_share=1.0)
    assert whole.tpot_with_prefill_s == whole.tpot_s
    assert whole.prefill_tok_s == float("inf")


@pytest.mark.parametrize("output_len", [1, 2])
def test_the_first_token_comes_of_the_prefill(output_len: int) -> None:
    """One token is one pass over the prompt, and no decode step."""
    got = ceiling(ONE, "hard", concurrency=1, input_len=128, output_len=output_len)
    wall_s = 128 / got.prefill_tok_s + (output_len - 1) * got.tpot_s
    assert got.output_tok_s == pytest.approx(output_len / wall_s)


def test_requests_that_share_a_prefix_share_its_place_in_the_pool() -> None:
    """Nine tenths of 1,000 prompt tokens are there once: 100 of its own and half of 100 each."""
    pooled = dataclasses.replace(ONE, pool=Pool(None, 15_000))

    def running(share: float) -> float:
        load = {"concurrency": 512, "input_len": 1000, "output_len": 100}
        return ceiling(pooled, "hard", cached_share=share, **load).running

    assert running(0.0) == pytest.approx(15_000 / 1050)
    assert running(0.9) == pytest.approx(100)


def test_prompts_that_ride_on_decode_steps_read_no_weights() -> None:
    mixed = dataclasses.replace(ONE, mixed=True)
    load = {"concurrency": 64, "input_len": 128, "output_len": 128}
    alone, riding = (ceiling(server, "hard", **load) for server in (ONE, mixed))
    assert riding.output_tok_s == pytest.approx(64 * 128 / (127 * riding.step.memory_s))
    assert riding.output_tok_s > alone.output_tok_s
    assert ceiling(mixed, "practical", **load) == ceiling(ONE, "practical", **load)


def test_no_routing_opens_fewer_than_one_tokens_experts_in_prefill_too() -> None:
    at = point_ceiling(ONE, {"concurrency": 1, "input_len": 128, "output_len": 1})
    assert at is not None
    # 8 of 128 experts, and what is not routed, at 4.8 TB/s: 1.27 ms
    assert 1e3 / at.impossible_tok_s == pytest.approx(1.27, rel=0.01)
    assert at.impossible_tok_s > 5 * at.hard_tok_s


def test_a_probe_bounds_no_other_prompts() -> None:
    probed = dataclasses.replace(ONE, routing=Routing(distinct=120.0))
    load = {"concurrency": 64, "input_len": 128, "output_len": 128}
    told, guessed = (point_ceiling(server, load) for server in (probed, ONE))
    assert told is not None
    assert guessed is not None
    assert told.impossible_tok_s == guessed.impossible_tok_s > told.hard_tok_s


def test_a_single_stream_does_not_wait_for_its_own_prompt() -> None:
    got = ceiling(ONE, "practical", concurrency=1, input_len=16_384, output_len=16)
    assert got.tpot_with_prefill_s == got.tpot_s


def test_the_open_loop_runs_what_its_rate_leads_to() -> None:
    """Two requests a second of 100 tokens: 200 tok/s, far below what 8,000 places could do."""
    pooled = dataclasses.replace(ONE, pool=Pool(None, 8_000_000))
    load = {"request_rate": 2, "input_len": 128, "output_len": 100}
    slow, fast = (point_ceiling(pooled, {**load, "request_rate": rate}) for rate in (2, 1e6))
    assert slow is not None
    assert slow.hard_tok_s == slow.practical_tok_s == 200
    assert slow.hard.running <= slow.practical.running < 2
    assert slow.hard.tpot_s < 0.003
    assert fast is not None
    assert fast.hard.running == pytest.approx(8_000_000 / 178)
