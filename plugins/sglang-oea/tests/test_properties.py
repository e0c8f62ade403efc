"""What must hold of the eager core for any router output, ties included."""

from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sglang_oea.cores import core_for, new_counter
from sglang_oea.eager import ranking_of, scores_of
from sglang_oea.reference import Rows, reference
from sglang_oea.router import Router
from sglang_oea.settings import Settings

many = settings(max_examples=120, deadline=None, derandomize=True, database=None)


@dataclass(frozen=True)
class Step:
    router: Router
    settings: Settings
    logits: torch.Tensor
    bias: torch.Tensor | None
    ids: torch.Tensor
    weights: torch.Tensor

    def run(self, valid=None, fill="mask", **other):
        """The core's ids and weights, of this step with other tensors or settings."""
        step = replace(self, **other)
        core = core_for(step.router, replace(step.settings, core="eager"), "cpu", fill)
        counter = new_counter("cpu")
        bound = None if valid is None else torch.tensor(valid)
        return core(step.logits, step.bias, step.ids, step.weights, bound, counter)

    def keys(self):
        return ranking_of(self.logits, self.bias, self.router)

    def base(self):
        """Each row's own k0 best of the engine's columns, best first, equals by id."""
        keys = self.keys()
        return [
            sorted(own, key=lambda j: (-float(keys[i, j]), j))[: self.settings.k0]
            for i, own in enumerate(self.own())
        ]

    def own(self):
        return self.ids[:, : self.router.top_k].tolist()


@st.composite
def steps(draw, general=False, **fixed):
    groups = draw(st.sampled_from([1, 2, 4]))
    size = draw(st.integers(4, 6))
    experts = groups * size
    k = draw(st.integers(1, 4))
    router = Router(
        experts=experts,
        top_k=k,
        scoring=draw(st.sampled_from(["softmax", "sigmoid", "sqrtsoftplus"])),
        biased=draw(st.booleans()),
        groups=groups,
        top_groups=draw(st.integers(1, groups)),
        renormalize=draw(st.booleans()),
        shared=draw(st.integers(0, 2)),
    )
    router = replace(router, **fixed.get("router", {}))
    k0 = draw(st.integers(1, k))
    asked = Settings(k0)
    if general:
        asked = Settings(
            k0,
            k_max=draw(st.none() | st.integers(k0, 5)),
            max_rank=draw(st.none() | st.integers(k0, experts)),
        )
    n = draw(st.integers(*fixed.get("rows", (1, 6))))
    # Quarters: many of them are equal, and none is apart by less than rounding.
    row = st.lists(st.integers(-12, 12), min_size=experts, max_size=experts)
    rows = draw(st.lists(row, min_size=n, max_size=n))
    logits = torch.tensor(rows, dtype=torch.float32) / 4
    bias = None
    if router.biased:
        bias = torch.tensor(draw(row), dtype=torch.float32) / 64
    return with_engine(router, asked, logits, bias, draw(st.randoms(use_true_random=False)))


def with_engine(router, asked, logits, bias, shuffle):
    """Add what an engine's gate gives: k of the best, in any order, at a scale of its own."""
    keys = ranking_of(logits, bias, router)
    ids = []
    for key in keys.tolist():
        order = list(range(router.experts))
        shuffle.shuffle(order)  # among equals any may be the engine's choice
        own = sorted(order, key=lambda j: -key[j])[: router.top_k]
        shuffle.shuffle(own)
        ids.append(own)
    ids = torch.tensor(ids, dtype=torch.int32)
    weights = scores_of(logits, router.scoring).gather(1, ids.long())
    if router.renormalize:
        weights = weights / weights.sum(-1, keepdim=True)
    weights = weights * 2.5
    n, shared = len(ids), router.shared
    ids = torch.cat([ids, torch.full((n, shared), router.experts, dtype=torch.int32)], 1)
    weights = torch.cat([weights, torch.full((n, shared), 0.4)], 1)
    return Step(router, asked, logits, bias, ids, weights)


def sets_of(ids, router):
    return [{j for j in row if j >= 0} for row in ids[:, : router.top_k].tolist()]


@many
@given(steps(general=True))
def test_a_row_keeps_its_own_k0_best(step):
    ids, _ = step.run()

    for own, chosen in zip(step.base(), sets_of(ids, step.router), strict=True):
        assert set(own) <= chosen


@many
@given(steps(general=True))
def test_a_row_has_at_most_k_max_experts_and_none_twice(step):
    ids, _ = step.run()
    most = min(step.settings.k_max or step.router.top_k, step.router.top_k)

    for row, chosen in zip(
        ids[:, : step.router.top_k].tolist(), sets_of(ids, step.router), strict=True
    ):
        assert len(chosen) <= most
        assert len(chosen) == sum(j >= 0 for j in row)


@many
@given(steps(general=True))
def test_every_expert_is_one_that_some_row_opened_and_the_router_allows(step):
    ids, _ = step.run()
    opened = {j for own in step.base() for j in own}
    keys = step.keys()

    for i, chosen in enumerate(sets_of(ids, step.router)):
        assert chosen <= opened
        assert all(keys[i, j] > float("-inf") for j in chosen)


@many
@given(steps())
def test_a_row_misses_no_expert_that_it_could_have_had(step):
    ids, _ = step.run()
    opened = {j for own in step.base() for j in own}
    keys = step.keys()

    for i, chosen in enumerate(sets_of(ids, step.router)):
        could = {j for j in opened if keys[i, j] > float("-inf")}
        assert len(chosen) == min(step.router.top_k, len(could))
        own = set(step.base()[i])
        others = [float(keys[i, j]) for j in chosen - own]
        left = [float(keys[i, j]) for j in could - chosen]
        assert not left or not others or max(left) <= min(others)


@many
@given(steps(general=True))
def test_weights_are_the_original_scores_at_the_engines_scale(step):
    k = step.router.top_k
    ids, weights = step.run()
    scores = scores_of(step.logits, step.router.scoring).double()

    for i, row in enumerate(ids[:, :k].tolist()):
        raw = [float(scores[i, j]) if j >= 0 else 0.0 for j in row]
        engine = float(step.weights[i, :k].sum())
        whole = sum(raw)
        if not step.router.renormalize:
            whole = sum(float(scores[i, j]) for j in step.own()[i])
        want = [x / whole * engine for x in raw]
        assert weights[i, :k].tolist() == pytest.approx(want, rel=1e-4, abs=1e-6)


@many
@given(steps(general=True), st.randoms(use_true_random=False))
def test_the_order_of_the_engines_columns_does_not_matter(step, shuffle):
    k = step.router.top_k
    order = list(range(k))
    shuffle.shuffle(order)
    order += range(k, k + step.router.shared)

    ids, weights = step.run()
    other_ids, other_weights = step.run(ids=step.ids[:, order], weights=step.weights[:, order])

    assert torch.equal(ids, other_ids)
    torch.testing.assert_close(weights, other_weights)


@many
@given(steps(general=True), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(step, shuffle):
    order = list(range(len(step.ids)))
    shuffle.shuffle(order)

    ids, weights = step.run()
    other_ids, other_weights = step.run(
        logits=step.logits[order], ids=step.ids[order], weights=step.weights[order]
    )

    assert torch.equal(ids[order], other_ids)
    assert torch.equal(weights[order], other_weights)


@many
@given(steps(general=True), st.integers(0, 6))
def test_padding_rows_stay_and_open_nothing(step, valid):
    valid = min(valid, len(step.ids))

    ids, weights = step.run(valid=valid)
    alone, alone_weights = step.run(
        logits=step.logits[:valid], ids=step.ids[:valid], weights=step.weights[:valid]
    )

    assert torch.equal(ids[valid:], step.ids[valid:])
    assert torch.equal(weights[valid:], step.weights[valid:])
    assert torch.equal(ids[:valid], alone)
    assert torch.equal(weights[:valid], alone_weights)


@many
@given(steps())
def test_rows_that_the_engine_has_masked_itself_stay_and_open_nothing(step):
    masked = step.ids.clone()
    masked[0] = -1

    ids, weights = step.run(ids=masked)
    rest, _ = step.run(logits=step.logits[1:], ids=step.ids[1:], weights=step.weights[1:])

    assert torch.equal(ids[0], masked[0])
    assert torch.equal(weights[0], step.weights[0])
    assert torch.equal(ids[1:], rest)


@many
@given(steps(rows=(1, 1)))
def test_a_batch_of_one_is_plain_top_k0(step):
    ids, weights = step.run()

    assert sets_of(ids, step.router) == [set(step.base()[0])]
    assert int((weights[0, : step.router.top_k] > 0).sum()) == step.settings.k0


@many
@given(steps())
def test_k0_of_k_changes_no_set_and_no_weight(step):
    k = step.router.top_k
    ids, weights = step.run(settings=Settings(k))

    for i in range(len(ids)):
        before = dict(zip(step.ids[i].tolist()[:k], step.weights[i].tolist()[:k], strict=True))
        after = dict(zip(ids[i].tolist()[:k], weights[i].tolist()[:k], strict=True))
        assert after == pytest.approx(before, rel=1e-4, abs=1e-6)


@many
@given(steps(general=True))
def test_shared_columns_are_not_touched(step):
    k = step.router.top_k
    ids, weights = step.run()

    assert torch.equal(ids[:, k:], step.ids[:, k:])
    assert torch.equal(weights[:, k:], step.weights[:, k:])
    assert (ids.dtype, weights.dtype) == (step.ids.dtype, step.weights.dtype)


@many
@given(steps(general=True), st.sampled_from(["repeat", "distinct"]))
def test_what_fills_a_slot_has_no_weight_and_is_what_was_asked(step, fill):
    k = step.router.top_k
    masked, _ = step.run()
    ids, weights = step.run(fill=fill)

    for i, row in enumerate(ids[:, :k].tolist()):
        empty = [c for c in range(k) if masked[i, c] < 0]
        assert all(weights[i, c] == 0 for c in empty)
        if fill == "repeat":
            assert all(row[c] == step.base()[i][0] for c in empty)
        else:
            assert len(set(row)) == k
            assert all(0 <= j < step.router.experts for j in row)


@many
@given(steps(general=True, router={"biased": False}), st.sampled_from(["mask", "distinct"]))
def test_the_core_is_the_reference(step, fill):
    k = step.router.top_k
    rows = Rows(
        step.logits.double().tolist(),
        None,
        step.own(),
        step.weights[:, :k].double().tolist(),
        len(step.ids),
    )
    ids, weights = step.run(fill=fill)

    for i, want in enumerate(reference(rows, step.router, step.settings, fill)):
        assert sorted(ids[i, :k].tolist()) == sorted([*want.experts, *want.spare])
        got = dict(zip(ids[i].tolist(), weights[i].tolist(), strict=False))
        for expert, weight in zip(want.experts, want.weights, strict=True):
            assert got[expert] == pytest.approx(weight, rel=1e-4, abs=1e-6)


def test_experts_that_the_model_has_switched_off_fill_a_slot_once_each():
    off = float("-inf")
    logits = torch.tensor([[1.0, off, 0.0, off, off, off]])
    ids = torch.tensor([[0, 2, 1, 3]], dtype=torch.int32)
    weights = torch.tensor([[0.75, 0.25, 0.0, 0.0]])
    step = Step(Router(6, 4), Settings(1), logits, None, ids, weights)

    new_ids, new_weights = step.run(fill="distinct")

    assert new_ids.tolist() == [[0, 2, 1, 3]]  # all but the first are empty slots
    assert new_weights.tolist() == [[1.0, 0.0, 0.0, 0.0]]
