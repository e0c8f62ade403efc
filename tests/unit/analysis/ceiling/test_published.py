"""Published results lie below their ceilings, as far as the study found them to."""

import pytest

from ceiling_facts import CONFIG
from sgmatrix.analysis.ceiling.published import published

RESULTS = list(published(CONFIG))


def test_all_decode_results_are_there() -> None:
    assert len(RESULTS) == 13


@pytest.mark.parametrize("one", RESULTS, ids=lambda one: one.what)
def test_none_is_faster_than_its_hard_ceiling(one) -> None:  # type: ignore[no-untyped-def]
    assert one.hard_ms < one.tpot_ms
    assert one.practical_ms < one.tpot_ms  # here; it need not be


@pytest.mark.parametrize(
    ("begin", "hard", "practical"),
    [
        ("glm-5-nvfp4, 8 x rtx-pro-6000-server, concurrency 8 ", 0.42, 0.56),
        ("glm-5-nvfp4, 8 x rtx-pro-6000-server, concurrency 32 ", 0.50, 0.65),
        ("glm-5-nvfp4, 8 x rtx-pro-6000-server, concurrency 64 ", 0.51, 0.69),
        ("deepseek-v3, 8 x h200-sxm, concurrency 4 ", 0.27, 0.37),
        ("qwen3-30b-a3b, 1 x a100-sxm-80gb, concurrency 1", 0.31, 0.37),
    ],
)
def test_ratios_of_the_study(begin: str, hard: float, practical: float) -> None:
    context = 1000.0 if begin.startswith("glm") else None  # as the study took it
    one = next(one for one in published(CONFIG, context) if one.what.startswith(begin))
    assert one.hard_ms / one.tpot_ms == pytest.approx(hard, abs=0.012)
    assert one.practical_ms / one.tpot_ms == pytest.approx(practical, abs=0.012)
