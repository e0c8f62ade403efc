"""Where OEA cannot work is known before any launch."""

import pytest

from sgmatrix.plan.model import ModelFacts
from sgmatrix.plan.oea import oea_obstacles
from sgmatrix.plan.parts import Oea

MODEL = ModelFacts("qwen", "/m", None, "d", 1024, experts=128, experts_per_token=8)


def obstacles(flags=None, *, device="cuda", model=MODEL, **oea):
    return list(oea_obstacles(Oea(**{"k0": 4, **oea}), flags or {}, model, device=device))


@pytest.mark.parametrize(
    "runner", ["flashinfer_trtllm", "flashinfer_mxfp4", "triton_kernel", "triton_kernels"]
)
def test_a_back_end_that_routes_inside_its_kernel_is_refused(runner):
    (why,) = obstacles({"moe_runner_backend": runner})

    assert f"moe_runner_backend = {runner} routes inside it" in why


@pytest.mark.parametrize(
    "runner", ["triton", "cutlass", "flashinfer_cutlass", "flashinfer_trtllm_routed", None]
)
def test_a_back_end_that_the_plug_in_reaches_is_not(runner):
    assert obstacles({"moe_runner_backend": runner}) == []


def test_other_features_that_it_does_not_go_with():
    assert obstacles({"enable_torch_compile": True, "enable_dp_attention": True}) == [
        "oea does not work with enable_torch_compile",
        "oea does not work with DP attention, whose padding rows would open experts",
    ]


@pytest.mark.parametrize(("k0", "refused"), [(8, False), (9, True)])
def test_no_more_experts_than_a_token_opens(k0, refused):
    why = "oea k0 = 9 is over the 8 experts that a token of qwen opens"

    assert obstacles(k0=k0) == ([why] if refused else [])


def test_a_model_that_does_not_say_is_left_to_the_engine():
    assert obstacles(k0=99, model=ModelFacts("x", "/m", None, "d", 1024)) == []


@pytest.mark.parametrize(("fill", "refused"), [(None, True), ("repeat", True), ("distinct", False)])
def test_the_cpu_engine_needs_distinct_experts(fill, refused):
    assert bool(obstacles(device="cpu", fill=fill)) == refused
