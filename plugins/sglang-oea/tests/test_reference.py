"""The reference against examples worked out by hand; everything else is held against it."""

import math

import pytest

from sglang_oea.reference import OUT_OF_REACH, Choice, Rows, ranking, reference
from sglang_oea.router import Router
from sglang_oea.settings import Settings

# Two tokens over four experts with softmax scores .4 .3 .2 .1 and the reverse; top-2.
SCORES = [[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]
LOGITS = [[math.log(x) for x in row] for row in SCORES]
ROUTER = Router(4, 2)


def choose(settings, *, router=ROUTER, fill="mask", valid=2, logits=LOGITS, ids=((1, 0), (2, 3))):
    rows = Rows(logits, None, ids, [[0.3 / 0.7, 0.4 / 0.7]] * len(logits), valid)
    return reference(rows, router, settings, fill)


def test_each_token_takes_the_other_ones_best_expert():
    # Base {0} and {3}, union {0, 3}: each keeps its own and passes over ranks 2 and 3.
    first, second = choose(Settings(1))

    assert first.experts == [0, 3]
    assert first.weights == pytest.approx([0.8, 0.2])  # .4 and .1 over .5
    assert second.experts == [3, 0]
    assert second.weights == pytest.approx([0.8, 0.2])


def test_alone_a_token_has_its_k0_best_and_an_empty_slot():
    (only,) = choose(Settings(1), logits=LOGITS[:1], ids=[(1, 0)])

    assert only == Choice([0], [pytest.approx(1.0)], [-1])


@pytest.mark.parametrize(("fill", "spare"), [("repeat", 0), ("mask", -1), ("distinct", 1)])
def test_the_empty_slot_holds_what_is_asked(fill, spare):
    (only,) = choose(Settings(1), logits=LOGITS[:1], ids=[(1, 0)], fill=fill)

    assert only.spare == [spare]


@pytest.mark.parametrize(("p", "base"), [(0.35, [0]), (0.5, [0, 1]), (0.99, [0, 1])])
def test_a_base_set_ends_where_its_scores_reach_p(p, base):
    (only,) = choose(Settings(2, p=p), logits=LOGITS[:1], ids=[(1, 0)])

    assert only.experts == base


def test_the_scores_of_a_base_set_add_up():
    # .4 is below .65, .4 + .3 is not: two of three.
    (only,) = choose(Settings(3, p=0.65), router=Router(4, 3), logits=LOGITS[:1], ids=[(2, 1, 0)])

    assert only.experts == [0, 1]


def test_k_max_bounds_the_experts_of_a_token():
    assert [one.experts for one in choose(Settings(1, k_max=1))] == [[0], [3]]


@pytest.mark.parametrize(("max_rank", "first"), [(3, [0]), (4, [0, 3])])
def test_max_rank_bounds_how_far_down_a_token_looks(max_rank, first):
    assert choose(Settings(1, max_rank=max_rank))[0].experts == first  # expert 3 is its 4th


def test_a_padding_row_stays_and_opens_nothing():
    first, second = choose(Settings(1), valid=1)

    assert (first.experts, second) == ([0], None)


def test_a_bias_ranks_and_does_not_weigh():
    # Scores are .5 .5 .5 .5; with the bias expert 2 is first, expert 0 second.
    router = Router(4, 2, "sigmoid", biased=True)
    rows = Rows([[0.0] * 4], [0.2, 0.0, 0.3, 0.1], [(0, 2)], [[1.25, 1.25]], 1)

    (only,) = reference(rows, router, Settings(2), "mask")

    assert only == Choice([2, 0], [pytest.approx(1.25), pytest.approx(1.25)], [])


def test_a_biased_group_is_as_strong_as_its_two_best():
    # Groups {0, 1} and {2, 3}: .9 + .1 against .6 + .6.
    logits = [math.log(x / (1 - x)) for x in (0.9, 0.1, 0.6, 0.6)]
    router = Router(4, 1, "sigmoid", biased=True, groups=2, top_groups=1)

    keys = ranking(logits, [0.0] * 4, router)

    assert keys == [OUT_OF_REACH, OUT_OF_REACH, pytest.approx(0.6), pytest.approx(0.6)]


def test_an_unbiased_group_is_as_strong_as_its_best():
    router = Router(4, 1, groups=2, top_groups=1)

    assert ranking([2.0, 0.0, 1.0, 1.0], None, router) == [2.0, 0.0, OUT_OF_REACH, OUT_OF_REACH]


def test_weights_that_the_router_does_not_renormalise_keep_their_scale():
    # The engine's scale is 2: .8 and .6 for scores .4 and .3; so .4 and .1 become .8 and .2.
    rows = Rows(LOGITS, None, [(0, 1), (3, 2)], [[0.8, 0.6], [0.8, 0.6]], 2)

    first, _ = reference(rows, Router(4, 2, renormalize=False), Settings(1), "mask")

    assert first.experts == [0, 3]
    assert first.weights == pytest.approx([0.8, 0.2])


def test_where_equals_lie_on_both_sides_of_the_k_th_rank_the_engine_stands():
    rows = Rows([[1.0, 0.0, 0.0, 0.0]], None, [(0, 3)], [[0.7, 0.3]], 1)

    (only,) = reference(rows, ROUTER, Settings(2), "mask")

    assert only.experts == [0, 3]
