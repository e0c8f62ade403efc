"""Parallelism bundles as SGLang's flags."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan.bundles import parallelism_flags, ranks_of


@pytest.mark.parametrize(
    ("bundle", "flags", "ranks"),
    [
        ("tp1", {"tp_size": 1}, 1),
        ("tp8", {"tp_size": 8}, 8),
        ("tp16", {"tp_size": 16}, 16),
        ("tp4pp2", {"tp_size": 4, "pp_size": 2}, 8),
        ("pp2", {"tp_size": 1, "pp_size": 2}, 2),
        ("tp8ep8", {"tp_size": 8, "ep_size": 8}, 8),
        (
            "tp2pp2dp2ep2",
            {"tp_size": 2, "pp_size": 2, "dp_size": 2, "ep_size": 2, "enable_dp_attention": True},
            4,
        ),
        ("tp2dp2", {"tp_size": 2, "dp_size": 2}, 4),
        ("dp4", {"tp_size": 1, "dp_size": 4}, 4),
        (
            "dp8ep8",
            {"tp_size": 8, "dp_size": 8, "ep_size": 8, "enable_dp_attention": True},
            8,
        ),
        (
            "tp8dp4ep8",
            {"tp_size": 8, "dp_size": 4, "ep_size": 8, "enable_dp_attention": True},
            8,
        ),
        ("tp8pp1", {"tp_size": 8}, 8),
    ],
)
def test_a_bundle_is_these_flags_and_takes_so_many_gpus(bundle, flags, ranks):
    assert parallelism_flags(bundle) == flags
    assert ranks_of(parallelism_flags(bundle)) == ranks


@pytest.mark.parametrize(
    "word",
    ["", "tp", "tp0", "8", "TP8", "tp8 ", "ep8tp8", "tp8x2", "tp-8", "tp8pp0", "None", "tp8\n"],
)
def test_any_other_word_is_refused_and_shown(word):
    with pytest.raises(SgmatrixError) as caught:
        parallelism_flags(word)

    assert caught.value.code == "config_rejected"
    assert caught.value.facts == f"axes.parallelism: {word!r} is not a bundle"
    assert "such as tp4pp2" in caught.value.fix


def test_a_server_without_such_flags_takes_one_gpu():
    assert ranks_of({}) == 1


@given(tp=st.integers(1, 64), pp=st.integers(1, 8), dp=st.integers(1, 8))
def test_without_dp_attention_the_gpus_are_the_product(tp, pp, dp):
    assert ranks_of(parallelism_flags(f"tp{tp}pp{pp}dp{dp}")) == tp * pp * dp
