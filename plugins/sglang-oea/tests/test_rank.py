"""The hook of one rank, with stand-ins for the engine around it."""

from types import SimpleNamespace

import pytest
import torch

from sglang_oea import rank as rank_module
from sglang_oea.cases import make_case
from sglang_oea.modes import Detector, NotedMode
from sglang_oea.plugin import _most_rows, _ranks_of
from sglang_oea.rank import Rank
from sglang_oea.refusal import Refused
from sglang_oea.router import Router, router_of
from sglang_oea.settings import Settings

ROUTER = Router(16, 4)


def config(**other):
    given = {
        "top_k": 4,
        "use_grouped_topk": False,
        "num_expert_group": None,
        "topk_group": None,
        "scoring_func": "softmax",
        "correction_bias": None,
        "custom_routing_function": None,
        "renormalize": True,
        "num_shared_topk_slots": 0,
    }
    return SimpleNamespace(**given | other)


def rank_in(mode="DECODE", **settings):
    one = Rank(Settings(**{"k0": 2, **settings}))
    one.detector = Detector("test", lambda: mode, ())
    one.most_rows = 8
    return one


def call(one, n=4, config=config(), layer=0, valid=None, seed=0):  # noqa: B008 - read only
    case = make_case(
        "spread", n, ROUTER, one.settings, dtype=torch.float32, device="cpu", seed=seed
    )
    out = one.around_post_process(
        lambda **kw: kw,
        topk_ids=case.ids,
        topk_weights=case.weights,
        topk_config=config,
        router_logits=case.logits,
        layer_id=layer,
        num_token_non_padded=valid,
        padded_rows_masked=False,
    )
    return case, out


def test_a_decode_step_is_rerouted_and_counted_by_layer():
    one = rank_in()

    case, out = call(one, n=4, layer=3)
    call(one, n=2, layer=5)

    assert not torch.equal(out["topk_ids"], case.ids)
    assert out["router_logits"] is case.logits
    assert out["padded_rows_masked"] is False
    facts = one.facts()
    assert (facts["calls"], facts["tokens"], facts["captured_calls"]) == (2, 6, 0)
    assert facts["layers"] == [3, 5]
    assert (facts["core"], facts["core_asked"], facts["fill"]) == ("eager", "auto", "distinct")
    assert (facts["k0"], facts["router"], facts["device"]) == (2, ["softmax"], "cpu")
    assert facts["check"]["ok"] is True
    assert facts["check"]["shapes"] == [1, 2, 3, 4, 7, 8]


@pytest.mark.parametrize("mode", ["EXTEND", "MIXED", "TARGET_VERIFY", "IDLE", None])
def test_any_other_step_is_left_alone_but_the_core_is_checked(mode):
    one = rank_in(mode)

    case, out = call(one)

    assert out["topk_ids"] is case.ids
    assert out["topk_weights"] is case.weights
    assert one.facts()["calls"] == 0
    assert one.facts()["layers"] == []
    assert one.facts()["check"]["ok"] is True


def test_before_the_first_call_nothing_is_claimed():
    facts = rank_in().facts()

    assert (facts["calls"], facts["core"], facts["check"]["ok"]) == (0, None, None)


def test_a_larger_batch_than_the_server_named_is_checked_when_it_comes():
    one = rank_in()
    call(one, n=4)
    call(one, n=11)

    assert one.facts()["check"]["shapes"] == [1, 2, 3, 4, 7, 8, 11]


def test_a_core_that_is_wrong_ends_the_server(monkeypatch):
    one = rank_in()
    right = rank_module.core_for

    def wrong_core(*args):
        core = right(*args)
        return type(core)(core.name, core.router, core.settings, core.fill, lambda *a: a[2:4])

    monkeypatch.setattr(rank_module, "core_for", wrong_core)

    with pytest.raises(Refused, match="the eager core is wrong on this device, router softmax"):
        call(one)
    assert one.facts()["check"]["ok"] is False


def test_a_core_that_does_not_run_ends_the_server(monkeypatch):
    one = rank_in()
    monkeypatch.setattr(rank_module, "check_core", lambda *_args, **_kw: 1 / 0)

    with pytest.raises(Refused, match="does not run: ZeroDivisionError"):
        call(one)


def test_a_first_call_inside_a_capture_is_refused_and_a_later_one_counted(monkeypatch):
    one = rank_in()
    monkeypatch.setattr(rank_module, "capturing", lambda: True)
    with pytest.raises(Refused, match="the first call of the hook is inside a graph capture"):
        call(one)

    monkeypatch.setattr(rank_module, "capturing", lambda: False)
    call(one)
    monkeypatch.setattr(rank_module, "capturing", lambda: True)
    call(one)

    assert one.facts()["captured_calls"] == 1
    with pytest.raises(Refused, match="a graph of 9 rows is captured before the core was checked"):
        call(one, n=9)


def test_a_captured_prefill_is_left_alone_unchecked(monkeypatch):
    one = rank_in("EXTEND")
    monkeypatch.setattr(rank_module, "capturing", lambda: True)

    case, out = call(one)

    assert out["topk_ids"] is case.ids
    assert one.facts()["check"]["ok"] is None


def test_routing_that_is_not_the_routers_own_is_refused():
    one = rank_in()
    case, _ = call(one)
    with pytest.raises(Refused, match="layer 1: the engine chose experts that are not the best"):
        one.around_post_process(
            lambda **kw: kw,
            topk_ids=(case.ids + 1) % 16,
            topk_weights=case.weights,
            topk_config=config(),
            router_logits=case.logits,
            layer_id=1,
        )


def test_padding_that_was_to_be_masked_must_be_told():
    with pytest.raises(Refused, match="the engine does not say which rows are padding"):
        call(rank_in(mask_padding=True))

    one = rank_in(mask_padding=True)
    case, out = call(one, valid=torch.tensor([3]))
    assert torch.equal(out["topk_ids"][3], case.ids[3])
    assert one.facts()["tokens"] == 3


def test_k0_over_the_models_k_is_refused():
    with pytest.raises(Refused, match="OEA_K0=5 of a model with 4 experts per token"):
        call(rank_in(k0=5))


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"custom_routing_function": print}, "the router has a custom routing function"),
        ({"scoring_func": "relu"}, "the router has scoring function relu"),
    ],
)
def test_a_router_that_cannot_be_known_is_refused(other, says):
    with pytest.raises(Refused, match=says):
        call(rank_in(), config=config(**other))


def test_a_bias_per_token_and_packed_ids_are_refused():
    class StandardTopKOutputPacked:
        pass

    one = rank_in()
    assert one.around_select(lambda: 5) == 5
    with pytest.raises(Refused, match="bias per token"):
        one.around_select(print, dynamic_expert_bias=torch.zeros(1))
    with pytest.raises(Refused, match="packs its ids"):
        one.around_select(StandardTopKOutputPacked)


def test_the_router_is_read_from_the_engines_config():
    logits = torch.zeros(2, 64)
    bias = torch.zeros(64)
    deepseek = config(
        top_k=9,
        use_grouped_topk=True,
        num_expert_group=8,
        topk_group=4,
        correction_bias=bias,
        num_shared_topk_slots=1,
    )

    # The biased grouped router scores with sigmoid although its config says softmax.
    there = router_of(deepseek, torch.zeros(2, 9), logits)
    assert there == Router(64, 8, "sigmoid", biased=True, groups=8, top_groups=4, shared=1)
    # On some paths the shared columns come after the hook.
    later = router_of(deepseek, torch.zeros(2, 8), logits)
    assert later == Router(64, 8, "sigmoid", biased=True, groups=8, top_groups=4)
    older = config(num_fused_shared_experts=1)
    del older.num_shared_topk_slots
    assert router_of(older, torch.zeros(2, 4), logits) == Router(64, 3, shared=1)


def test_a_noted_mode_follows_nested_forwards_and_is_reset_on_error():
    noted, seen = NotedMode(), []

    def batch(name):
        return SimpleNamespace(forward_mode=SimpleNamespace(name=name))

    def outer(runner, _batch):
        seen.append(noted.mode())
        noted.around_raw(lambda *_: seen.append(noted.mode()), runner, batch("EXTEND"))
        seen.append(noted.mode())

    noted.around_raw(outer, None, batch("DECODE"))
    runner = SimpleNamespace(capture_forward_mode=SimpleNamespace(name="DECODE"))
    captured = noted.around_capture(lambda _runner, size: (noted.mode(), size), runner, 8)
    with pytest.raises(ZeroDivisionError):
        noted.around_raw(lambda *_: 1 / 0, None, batch("DECODE"))

    assert seen == ["DECODE", "EXTEND", "DECODE"]
    assert captured == ("DECODE", 8)
    assert noted.mode() is None


def test_padding_is_masked_where_the_runner_knows_it_and_the_model_does_not_pass_it_on():
    noted = NotedMode()
    one = rank_in(mask_padding=True)
    one.detector = Detector("hooks", noted.mode, (), noted.valid)
    buffers = SimpleNamespace(num_token_non_padded=torch.tensor([3], dtype=torch.int32))
    runner = SimpleNamespace(capture_forward_mode=SimpleNamespace(name="DECODE"), buffers=buffers)

    case, out = noted.around_capture(lambda *_: call(one), runner, 4)
    assert torch.equal(out["topk_ids"][3], case.ids[3])
    assert one.facts()["tokens"] == 3

    batch = SimpleNamespace(
        forward_mode=SimpleNamespace(name="DECODE"), num_token_non_padded=torch.tensor(2)
    )
    case, out = noted.around_raw(lambda *_: call(one), None, batch)
    assert torch.equal(out["topk_ids"][2:], case.ids[2:])
    assert one.facts()["tokens"] == 5

    batch.num_token_non_padded = None  # an engine that does not count them
    with pytest.raises(Refused, match="the engine does not say which rows are padding"):
        noted.around_raw(lambda *_: call(one), None, batch)
    assert noted.valid() is None


def test_the_largest_batch_is_the_largest_that_the_server_names():
    named = SimpleNamespace(
        max_running_requests=32, cuda_graph_max_bs_decode=None, cuda_graph_bs_decode=[1, 2, 48]
    )

    assert _most_rows(named) == 48
    assert _most_rows(SimpleNamespace()) is None


def test_a_place_that_is_not_known_is_none_however_the_engine_says_so():
    class Ps:
        tp_rank = 2

        def __getattr__(self, name):
            raise AssertionError(f"{name}: the group is not initialized")

    assert _ranks_of(SimpleNamespace(ps=Ps()))["tp_rank"] == 2
    assert _ranks_of(SimpleNamespace(ps=Ps()))["ep_rank"] is None


def test_the_place_of_a_rank_is_found_where_its_version_keeps_it():
    ps = SimpleNamespace(tp_rank=1, pp_rank=0, dp_rank=None, moe_ep_rank=1)

    assert _ranks_of(SimpleNamespace(ps=ps)) == {
        "tp_rank": 1,
        "pp_rank": 0,
        "dp_rank": None,
        "ep_rank": 1,
    }
