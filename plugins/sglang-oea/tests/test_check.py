"""The comparison that each rank makes at its start finds a core that is wrong in any one way."""

from dataclasses import replace

import pytest
import torch

from sglang_oea import eager
from sglang_oea.check import Checked, cases_for, check_cases, check_core, misread, sizes_up_to
from sglang_oea.cores import Core, core_for, fill_of
from sglang_oea.refusal import Refused
from sglang_oea.router import Router
from sglang_oea.settings import Settings

ROUTERS = [
    Router(32, 4),
    Router(32, 4, "sigmoid", biased=True),
    Router(32, 4, "sigmoid", biased=True, groups=4, top_groups=2, shared=1),
    Router(24, 3, "softmax", groups=3, top_groups=2, renormalize=False),
    Router(32, 4, "sqrtsoftplus", biased=True),
]
GENERAL = Settings(2, k_max=3, p=0.4, max_rank=8, core="eager")


def checked(router=ROUTERS[1], settings=None, fill="repeat", dtype=torch.float32, most=17):
    settings = settings or Settings(2, core="eager")
    core = core_for(router, settings, "cpu", fill)
    return check_core(core, sizes_up_to(most), dtype=dtype, device="cpu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("fill", ["repeat", "mask", "distinct"])
@pytest.mark.parametrize("router", ROUTERS, ids=lambda router: router.kind)
def test_the_eager_core_is_right_for_every_router(router, fill, dtype):
    for settings in (Settings(2, core="eager"), GENERAL):
        done = checked(router, settings, fill, dtype)

        assert done.problem is None
        assert done.ok is True
        assert done.shapes == [1, 2, 3, 4, 7, 8, 9, 15, 16, 17]
        assert done.cases == 20


def test_sizes_are_all_small_ones_and_those_around_the_powers_of_two():
    assert sizes_up_to(1) == [1]
    assert sizes_up_to(6) == [1, 2, 3, 4, 6]
    assert sizes_up_to(160) == [
        *(1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 160)
    ]
    assert sizes_up_to(4000)[-3:] == [255, 256, 4000]


def broken(how):
    """A core that is wrong in one way, on the right core's results."""
    right = core_for(ROUTERS[1], Settings(2, core="eager"), "cpu", "repeat")

    def reroute(logits, bias, ids, weights, valid, counter):
        new_ids, new_weights = right(logits, bias, ids, weights, valid, counter)
        return how(logits, bias, ids, weights, valid, counter, new_ids, new_weights)

    return replace(right, reroute=reroute)


def unchanged(logits, bias, ids, weights, valid, counter, new_ids, new_weights):
    return ids, weights


def first_columns(logits, bias, ids, weights, valid, counter, new_ids, new_weights):
    kept = ids.clone()
    kept[:, 2:] = ids[:, :1]  # as if the engine's columns were sorted
    return kept, new_weights


def old_weights(logits, bias, ids, weights, valid, counter, new_ids, new_weights):
    return new_ids, weights


def heavier(logits, bias, ids, weights, valid, counter, new_ids, new_weights):
    return new_ids, new_weights * 1.0001


def not_a_number(logits, bias, ids, weights, valid, counter, new_ids, new_weights):
    new_weights[-1, -1] = float("nan")  # one alone: max() and sorted() would pass over it
    return new_ids, new_weights


def miscounted(logits, bias, ids, weights, valid, counter, new_ids, new_weights):
    counter[0] += 1
    return new_ids, new_weights


def counts_padding(logits, bias, ids, weights, valid, counter, new_ids, new_weights):
    counter[1] = len(ids)
    return new_ids, new_weights


def no_bias(logits, bias, ids, weights, valid, counter, new_ids, new_weights):
    core = core_for(ROUTERS[1], Settings(2, core="eager"), "cpu", "repeat")
    return eager.reroute(
        *(logits, torch.zeros_like(bias), ids, weights, valid),
        router=core.router,
        settings=core.settings,
        fill="repeat",
    )


def pads_too(logits, bias, ids, weights, valid, counter, new_ids, new_weights):
    core = core_for(ROUTERS[1], Settings(2, core="eager"), "cpu", "repeat")
    return eager.reroute(
        *(logits, bias, ids, weights, None),
        router=core.router,
        settings=core.settings,
        fill="repeat",
    )


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (unchanged, "must be"),
        (first_columns, "row 0 of 1"),
        (old_weights, "a weight is off"),
        (heavier, "a weight is off by"),
        (not_a_number, "a weight is not finite"),
        (miscounted, "counted [2, 1], must be [1, 1]"),
        (counts_padding, "counted"),
        (no_bias, "must be"),
        (pads_too, ""),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_core_that_is_wrong_in_one_way_is_found(how, says):
    done = check_core(broken(how), sizes_up_to(17), dtype=torch.float32, device="cpu")

    assert done.ok is False
    assert says in done.problem


def test_two_checks_are_one_only_while_both_hold():
    good, bad = Checked(True, 2, [1, 2], 1e-8), Checked(False, 1, [4], 1e-3, "wrong")

    assert Checked().and_then(good) == good
    assert good.and_then(Checked(True, 1, [4], 1e-7)) == Checked(True, 3, [1, 2, 4], 1e-7)
    assert good.and_then(bad) == Checked(False, 3, [1, 2, 4], 1e-3, "wrong")
    assert bad.and_then(good).ok is False


def engine_step(router, dtype=torch.float32):
    (case,) = list(cases_for(router, Settings(2), [16], dtype, "cpu"))[:1]
    return case.logits, case.bias, case.ids, case.weights


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("router", ROUTERS, ids=lambda router: router.kind)
def test_the_engines_own_choice_fits_its_router(router, dtype):
    assert misread(router, *engine_step(router, dtype)) is None


def test_a_router_that_was_read_wrongly_is_found():
    logits, bias, ids, weights = engine_step(ROUTERS[1])
    ranked = "the engine chose experts that are not the best ranked of its router"
    weighed = "the engine's weights are not in proportion to the scores of its router"

    assert misread(ROUTERS[1], logits, bias * -3, ids, weights) == ranked
    assert misread(ROUTERS[1], logits, bias, (ids + 1) % 32, weights) == ranked
    assert misread(ROUTERS[1], logits, bias, ids, weights.flip(1)) == weighed
    softmax = Router(32, 4)
    logits, _, ids, weights = engine_step(softmax)
    assert misread(replace(softmax, scoring="sigmoid"), logits, None, ids, weights) == weighed


def test_rows_that_say_nothing_do_not_accuse_the_engine():
    logits, bias, ids, weights = engine_step(ROUTERS[1])
    logits[0] = float("nan")
    ids[1] = -1
    weights[2] = 0

    assert misread(ROUTERS[1], logits, bias, ids, weights) is None


@pytest.mark.parametrize(
    ("router", "settings", "says"),
    [
        (Router(8, 2), Settings(3), "OEA_K0=3 of a model with 2 experts per token"),
        (Router(9, 2, groups=2), Settings(1), "9 experts in 2 groups"),
        (Router(8, 2), Settings(1, core="triton"), "OEA_CORE=triton on device cpu"),
    ],
)
def test_what_no_core_can_do_is_refused(router, settings, says):
    with pytest.raises(Refused, match=says):
        core_for(router, settings, "cpu", "distinct")


def test_the_cpu_engine_gets_distinct_experts_and_nothing_else():
    assert fill_of(Settings(2), "cpu") == "distinct"
    assert fill_of(Settings(2), "cuda") == "repeat"
    assert fill_of(Settings(2, fill="mask"), "cuda") == "mask"
    with pytest.raises(Refused, match="OEA_FILL=repeat on the CPU engine"):
        fill_of(Settings(2, fill="repeat"), "cpu")


def test_cases_of_one_router_serve_cores_of_several_k0():
    cases = list(cases_for(ROUTERS[2], Settings(1), [1, 8], torch.float32, "cpu"))

    for k0 in (1, 4):
        core: Core = core_for(ROUTERS[2], Settings(k0, core="eager"), "cpu", "mask")
        assert check_cases(core, cases).ok
