"""Decode steps against the study's figures, hand calculations, and what must be monotone."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceiling_facts import GLM5, H200, QWEN3, RTX
from sgmatrix.analysis.ceiling.decode import Speculation, decode_pass, prefill_pass, tpot_s
from sgmatrix.analysis.ceiling.forward import Pass, Routing
from sgmatrix.analysis.ceiling.links import Tier
from sgmatrix.analysis.ceiling.parallel import Parallel, parallel_of
from sgmatrix.core.facts.model import Shape

TP8 = Parallel(tp=8)


def glm5(
    batch: float, tier: Tier, parallel: Parallel = TP8, routing: Routing | None = None
) -> Pass:
    return decode_pass(GLM5, RTX, parallel, tier, batch=batch, context=320, routing=routing)


def qwen3(batch: float, tier: Tier, routing: Routing | None = None) -> Pass:
    return decode_pass(QWEN3, H200, Parallel(), tier, batch=batch, context=320, routing=routing)


@pytest.mark.parametrize(
    ("batch", "hard_ms", "hard_by", "practical_ms", "practical_by", "parts_ms"),
    [
        (1, 5.15, "memory", 7.31, "memory", (6.06, 0.03, 1.25)),
        (2, 6.03, "memory", 8.40, "memory", (7.09, 0.05, 1.31)),
        (256, 37.3, "memory", 61.6, "memory", (43.8, 6.6, 17.7)),
        (512, 41.8, "memory", 87.9, "memory", (49.2, 13.2, 34.1)),
        (1024, 55.4, "link", 141, "link", (60.0, 26.4, 67.1)),
        (2048, 110.9, "link", 248, "link", (81.5, 52.7, 133)),
    ],
)
def test_glm5_on_eight_gpus(
    batch: int,
    hard_ms: float,
    hard_by: str,
    practical_ms: float,
    practical_by: str,
    parts_ms: tuple[float, float, float],
) -> None:
    hard, practical = glm5(batch, "hard"), glm5(batch, "practical")
    assert hard.seconds * 1e3 == pytest.approx(hard_ms, rel=0.005)
    assert practical.seconds * 1e3 == pytest.approx(practical_ms, rel=0.005)
    assert (hard.bound, practical.bound) == (hard_by, practical_by)
    parts = (practical.memory_s, practical.compute_s, practical.link_s)
    assert [1e3 * one for one in parts] == pytest.approx(parts_ms, rel=0.02, abs=0.005)


@pytest.mark.parametrize(
    ("batch", "hard_ms", "practical_ms", "oea_percent"),
    [
        (1, 1.27, 1.50, 30),
        (8, 5.44, 6.40, 40),
        (16, 8.40, 9.88, 35),
        (32, 11.3, 13.3, 25),
        (64, 12.8, 15.1, 11),
        (256, 14.3, 17.0, 0),
        (1024, 19.3, 25.3, 0),
    ],
)
def test_qwen3_on_one_h200(
    batch: int, hard_ms: float, practical_ms: float, oea_percent: float
) -> None:
    practical = qwen3(batch, "practical").seconds
    assert qwen3(batch, "hard").seconds * 1e3 == pytest.approx(hard_ms, rel=0.005)
    assert practical * 1e3 == pytest.approx(practical_ms, rel=0.005)
    with_oea = qwen3(batch, "practical", Routing(free_experts=4)).seconds
    assert 100 * (1 - with_oea / practical) == pytest.approx(oea_percent, abs=0.5)


def test_bytes_of_a_single_stream_by_hand() -> None:
    """From the dimensions alone: 9.2257 GB on each GPU and token."""
    assert glm5(1, "hard").memory_s == pytest.approx(9.2257e9 / 1.792e12, rel=1e-3)


def test_qwen3_step_by_hand() -> None:
    layer = 2048 * 128 * 72 + 8 * 3 * 2048 * 768 + 2048 * 128
    read = 2 * (48 * layer + 151936 * 2048) + 320 * 98_304
    assert qwen3(1, "hard").seconds == pytest.approx(read / 4.8e12, rel=1e-12)


def test_agrees_with_another_model_of_the_hardware() -> None:
    """aiconfigurator 0.12.0, speed-of-light mode."""
    assert qwen3(1, "hard").seconds * 1e3 == pytest.approx(1.275, rel=0.01)
    assert glm5(1, "hard").memory_s * 1e3 == pytest.approx(4.943, rel=0.05)


@pytest.mark.parametrize(
    ("parallel", "steps_ms"),
    [
        (Parallel(tp=8, ep=8), (8.95, 10.59, 61.6, 87.9, 141, 248)),
        (Parallel(tp=4, pp=2), (10.35, 10.35, 83.8, 95.0, 121, 175)),
        (
            Parallel(tp=8, ep=8, dp=8, dp_attention=True, all_to_all=True),
            (None, None, 58.9, 63.8, 73.7, 94.1),
        ),
    ],
)
def test_other_layouts(parallel: Parallel, steps_ms: tuple[float | None, ...]) -> None:
    for batch, expected in zip((1, 2, 256, 512, 1024, 2048), steps_ms, strict=True):
        if expected is not None:
            step = glm5(batch, "practical", parallel).seconds * 1e3
            assert step == pytest.approx(expected, rel=0.01)


def test_all_gather_costs_more_than_all_to_all() -> None:
    both = [
        glm5(2048, "practical", Parallel(8, 8, dp=8, dp_attention=True, all_to_all=way)).seconds
        for way in (True, False)
    ]
    assert both[1] * 1e3 == pytest.approx(124, rel=0.02)
    assert both[0] < both[1] < glm5(2048, "practical").seconds
    hard = [
        glm5(2048, "hard", Parallel(8, 8, dp=8, dp_attention=True, all_to_all=way)).seconds
        for way in (True, False)
    ]
    assert hard[0] == hard[1]


def test_measured_experts_win_over_uniform_routing() -> None:
    uniform, skewed = glm5(64, "hard"), glm5(64, "hard", routing=Routing(distinct=150.0))
    assert uniform.distinct_experts == pytest.approx(222.4, abs=0.1)
    assert skewed.distinct_experts == 150.0
    ratio = skewed.parts["experts"].memory_s / uniform.parts["experts"].memory_s
    assert ratio == pytest.approx(150.0 / 222.4, rel=1e-3)


def test_speculation_verifies_more_and_yields_more() -> None:
    draft = Speculation(draft_tokens=3, accepted=2.5)
    step = decode_pass(QWEN3, H200, Parallel(), "hard", batch=4, context=320, speculation=draft)
    assert step.tokens == 16
    assert step.distinct_experts == qwen3(16, "hard").distinct_experts
    assert tpot_s(step, draft) == step.seconds / 2.5
    assert tpot_s(step, Speculation(3)) == step.seconds / 4


def test_prefill_is_bound_by_the_link_of_the_node() -> None:
    one = prefill_pass(GLM5, RTX, TP8, "practical", chunk=8192, prompt=8192)
    assert 8192 / one.seconds == pytest.approx(10_200, rel=0.05)
    assert one.bound == "link"


def test_pipeline_stages_prefill_different_chunks_at_once() -> None:
    two = prefill_pass(GLM5, RTX, Parallel(tp=4, pp=2), "hard", chunk=2048, prompt=2048)
    one = prefill_pass(GLM5, RTX, Parallel(tp=4), "hard", chunk=2048, prompt=2048)
    assert two.seconds == pytest.approx(one.seconds / 2)


@given(st.floats(1, 4096), st.floats(1.01, 4), st.sampled_from(["hard", "practical"]))
def test_more_requests_take_longer_and_yield_more(batch: float, more: float, tier: Tier) -> None:
    few, many = glm5(batch, tier), glm5(batch * more, tier)
    assert few.seconds <= many.seconds * (1 + 1e-9)
    assert batch / few.seconds <= batch * more / many.seconds * (1 + 1e-9)


@given(st.floats(1, 4096), st.floats(1, 1e5))
def test_the_hard_tier_is_never_slower(batch: float, context: float) -> None:
    for parallel in (TP8, Parallel(tp=4, pp=2), Parallel(8, 8, dp=8, dp_attention=True)):
        hard, practical = (
            decode_pass(GLM5, RTX, parallel, tier, batch=batch, context=context).seconds
            for tier in ("hard", "practical")
        )
        assert hard <= practical * (1 + 1e-9)


@given(st.floats(1, 1e5), st.floats(1, 10))
def test_longer_contexts_take_longer(context: float, more: float) -> None:
    def seconds(tokens: float) -> float:
        step = decode_pass(GLM5, RTX, TP8, "practical", batch=64, context=tokens)
        return step.seconds

    assert seconds(context) <= seconds(context * more) * (1 + 1e-9)


@given(st.sampled_from(["hard", "practical"]), st.sampled_from(["memory_bytes_s", "link"]))
def test_faster_hardware_is_never_slower(tier: Tier, what: str) -> None:
    if what == "link":
        assert RTX.link is not None
        faster = dataclasses.replace(
            RTX, link=dataclasses.replace(RTX.link, peak_bytes_s=9e11, practical_bytes_s=9e11)
        )
    else:
        faster = dataclasses.replace(RTX, memory_bytes_s=9e12, practical_memory_bytes_s=8e12)
    old, new = (
        decode_pass(GLM5, one, TP8, tier, batch=512, context=320).seconds for one in (RTX, faster)
    )
    assert new <= old


def test_unknown_compute_bounds_nothing() -> None:
    blind = dataclasses.replace(H200, flops_s={})
    step = decode_pass(QWEN3, blind, Parallel(), "practical", batch=8, context=320)
    assert step.compute_s == 0
    assert step.seconds == step.memory_s


def test_layouts_from_server_flags() -> None:
    assert parallel_of({}) == Parallel()
    assert parallel_of({"tp_size": 4, "pp_size": 2}).devices == 8
    replicas = parallel_of({"tp_size": 2, "dp_size": 3})
    assert (replicas.devices, replicas.replicas, replicas.attention_tp) == (6, 3, 2)
    attention = parallel_of({"tp_size": 8, "dp_size": 4, "ep_size": 8, "enable_dp_attention": True})
    assert (attention.devices, attention.replicas) == (8, 1)
    assert (attention.attention_tp, attention.attention_groups) == (2, 4)
    assert parallel_of({"tp_size": 8, "moe_a2a_backend": "deepep"}).all_to_all
    assert not parallel_of({"tp_size": 8, "moe_a2a_backend": "none"}).all_to_all


def test_tokens_that_stay_send_nothing_to_experts() -> None:
    groups = Parallel(tp=8, ep=8, dp=8, dp_attention=True)
    step = decode_pass(
        GLM5, RTX, groups, "hard", batch=512, context=0, routing=Routing(distinct=8, stays=True)
    )
    assert RTX.link is not None
    logits = 512 * GLM5.vocabulary / 8 * 2 * 7 / 8 / RTX.link.peak_bytes_s
    assert step.link_s == pytest.approx(logits)


def test_the_hard_tier_sends_tokens_as_their_experts_take_them() -> None:
    """NVFP4 there, 0.5625 bytes a value, and bf16 back."""
    groups = Parallel(tp=8, ep=8, dp=8, dp_attention=True, all_to_all=True)
    step = decode_pass(GLM5, RTX, groups, "hard", batch=512, context=0)
    assert RTX.link is not None
    reached = 8 * (1 - (7 / 8) ** 8) * 7 / 8
    layer = 512 / 8 * reached * GLM5.hidden * (0.5625 + 2)
    logits = 512 * GLM5.vocabulary / 8 * 2 * 7 / 8
    assert step.link_s * RTX.link.peak_bytes_s == pytest.approx(75 * layer + logits)


def test_all_to_all_may_take_the_place_of_an_all_reduce() -> None:
    plain, spread = (
        decode_pass(
            GLM5, RTX, Parallel(tp=8, ep=8, all_to_all=one), "hard", batch=512, context=0
        ).link_s
        for one in (False, True)
    )
    assert spread < plain


def test_a_sparse_index_reads_short_contexts_whole() -> None:
    """Contexts from 128 to 4,224, of which at most 2,048 are read: 1,598 in the mean."""
    plain = dataclasses.replace(GLM5, indexer=None)

    def read_s(model: Shape, context: float, spread: float) -> float:
        step = decode_pass(
            model, RTX, Parallel(tp=8), "hard", batch=8, context=context, spread=spread
        )
        return step.parts["attention_core"].memory_s

    mean = ((2048**2 - 128**2) / 2 + 2048 * 2176) / 4096
    assert read_s(GLM5, 2176, 2048) == pytest.approx(read_s(plain, mean, 0))
    assert read_s(GLM5, 2176, 0) == pytest.approx(read_s(plain, 2048, 0))
    assert read_s(GLM5, 1024, 512) == pytest.approx(read_s(plain, 1024, 0))
