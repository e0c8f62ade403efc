"""Parameters and bytes against model cards and against hand calculations."""

import dataclasses

import pytest

from ceiling_facts import GLM5, QWEN3, shape
from sgmatrix.analysis.ceiling.parallel import Parallel
from sgmatrix.analysis.ceiling.weights import (
    active_parameters,
    device_weight_bytes,
    kv_token_bytes,
    model_bytes,
    parameters,
)


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("glm-5-nvfp4", 744, 40),
        ("deepseek-v3", 671, 37),
        ("qwen3-30b-a3b", 30.5, 3.3),
        ("qwen3-235b-a22b", 235, 22),
        ("glm-4.5-air", 106, 12),
        ("kimi-k2", 1026, 32),
    ],
)
def test_the_counts_are_those_of_the_model_cards(name: str, total: float, active: float) -> None:
    model = shape(name)
    assert sum(parameters(model).values()) / 1e9 == pytest.approx(total, rel=0.01)
    # cards count the embedding as active, or not
    assert active_parameters(model) / 1e9 == pytest.approx(active, rel=0.09)


def test_qwen3_by_hand() -> None:
    layer = 2048 * 128 * (32 + 32 + 4 + 4) + 128 * 3 * 2048 * 768 + 2048 * 128
    whole = 48 * layer + 2 * 151936 * 2048
    assert sum(parameters(QWEN3).values()) == whole
    assert model_bytes(QWEN3) == 2 * whole


def test_glm5_by_hand() -> None:
    """Attention bf16, feed-forward networks NVFP4 at 0.5625 bytes."""
    attention = 6144 * 2048 + 2048 * 64 * 256 + 6144 * 576 + 512 * 64 * 448 + 64 * 256 * 6144
    indexer = 2048 * 32 * 128 + 6144 * 128 + 6144 * 32
    ffn = 3 * 6144 * 2048 * 257 * 75 + 3 * 6144 * 12288 * 3
    plain = 78 * (attention + indexer) + 75 * 6144 * 256 + 2 * 154880 * 6144
    assert model_bytes(GLM5) == pytest.approx(2 * plain + 0.5625 * ffn, rel=1e-12)
    assert model_bytes(GLM5) / 1e9 == pytest.approx(440.9, abs=0.05)


def test_latent_projections_lie_on_every_device() -> None:
    one, eight = (device_weight_bytes(GLM5, Parallel(tp=n)) for n in (1, 8))
    replicated = 2 * 78 * (6144 * 2048 + 6144 * 576 + 2048 * 4096 + 6144 * 160)
    router = 2 * 75 * 6144 * 256
    assert eight == pytest.approx((one - replicated - router) / 8 + replicated + router, rel=1e-12)


def test_dp_attention_keeps_attention_whole_and_splits_the_experts() -> None:
    whole = device_weight_bytes(GLM5, Parallel(tp=8, ep=8, dp=8, dp_attention=True))
    routed = parameters(GLM5)["routed"] * 0.5625
    vocabulary = 2 * 2 * 154880 * 6144
    assert whole == pytest.approx(model_bytes(GLM5) - (routed + vocabulary) * 7 / 8, rel=1e-12)


def test_pipeline_stages_share_the_layers() -> None:
    assert device_weight_bytes(GLM5, Parallel(tp=4, pp=2)) == pytest.approx(
        device_weight_bytes(GLM5, Parallel(tp=4)) / 2
    )


def test_cached_tokens_against_a_published_pool() -> None:
    """29.32 GiB held 314,304 tokens (rtx6kpro models/glm5.md); MLA is whole on every device."""
    assert kv_token_bytes(GLM5, 8) == 78 * (576 * 2 + 132) == 100_152
    assert 29.32 * 2**30 / kv_token_bytes(GLM5, 8) == pytest.approx(314_304, rel=1e-3)


def test_cached_tokens_of_gqa_are_shared_out_down_to_one_head() -> None:
    assert kv_token_bytes(QWEN3, 1) == 98_304
    assert kv_token_bytes(QWEN3, 4) == 98_304 / 4
    assert kv_token_bytes(QWEN3, 8) == 98_304 / 4  # 4 KV heads: two devices hold the same


def test_an_fp8_cache_takes_half() -> None:
    half = dataclasses.replace(QWEN3, precision=dataclasses.replace(QWEN3.precision, kv="fp8"))
    assert kv_token_bytes(half, 1) == 98_304 / 2
