"""Where OEA cannot work is known before any launch."""

import pytest

from sgmatrix.plan.model import ModelFacts
from sgmatrix.plan.oea import (
    oea_environment,
    oea_obstacles,
    oea_record,
    oea_text,
    padding_obstacle,
)
from sgmatrix.plan.parts import Oea, axis_name_problem, checked_names

MODEL = ModelFacts("qwen", "/m", None, "d", 1024, experts=128, experts_per_token=8)


def obstacles(flags=None, *, device="cuda", model=MODEL, **oea):
    given = {"disable_cuda_graph": True, **(flags or {})}
    return list(oea_obstacles(Oea(**{"k0": 4, **oea}), given, model, device=device))


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
        "oea does not work with enable_torch_compile: compiled decode steps do not run the plug-in",
        "oea does not work with enable_dp_attention: its padding rows would open experts",
    ]
    assert len(obstacles({"moe_a2a_backend": "deepep", "speculative_algorithm": "EAGLE"})) == 2
    assert obstacles({"moe_a2a_backend": "none", "enable_dp_attention": False}) == []


@pytest.mark.parametrize(("k0", "refused"), [(8, False), (9, True)])
def test_no_more_experts_than_a_token_opens(k0, refused):
    why = "oea k0 = 9 is over the 8 experts that a token of qwen opens"

    assert obstacles(k0=k0) == ([why] if refused else [])


def test_a_model_that_does_not_say_is_left_to_the_engine():
    assert obstacles(k0=99, model=ModelFacts("x", "/m", None, "d", 1024)) == []


@pytest.mark.parametrize(
    ("fill", "refused"), [(None, False), ("repeat", True), ("distinct", False)]
)
def test_the_cpu_engine_needs_distinct_experts(fill, refused):
    assert bool(obstacles(device="cpu", fill=fill)) == refused


def test_what_the_ranks_have_to_prove():
    assert oea_record("off", "cpu") == {"on": False, "settings": {}}
    assert oea_record({"k0": 2}, "cpu") == {"on": True, "settings": {"k0": 2, "fill": "distinct"}}
    assert oea_record({"k0": 2, "core": "auto"}, "cuda") == {
        "on": True,
        "settings": {"k0": 2, "fill": "repeat"},
    }
    assert oea_record({"k0": 2, "core": "triton"}, "cuda")["settings"]["core"] == "triton"


def test_what_cannot_be_is_refused_where_it_is_written():
    assert obstacles(device="cpu", core="triton") == [
        "oea core = triton needs a GPU; take it out, or write eager"
    ]
    with pytest.raises(ValueError, match="k_max = 1 is below k0 = 2"):
        Oea(k0=2, k_max=1)
    with pytest.raises(ValueError, match="max_rank = 1 is below k0 = 2"):
        Oea(k0=2, max_rank=1)
    assert "set by the workflow itself" in axis_name_problem("OEA_K0")
    with pytest.raises(ValueError, match="set by the axis oea"):
        checked_names({"OEA_K0": "2"})


def test_the_variables_that_switch_it():
    assert oea_environment("off") == {"OEA_ENABLE": "0"}
    assert oea_environment({"k0": 4, "p": 0.9, "mask_padding": True}) == {
        "OEA_ENABLE": "1",
        "OEA_K0": "4",
        "OEA_P": "0.9",
        "OEA_MASK_PADDING": "1",
    }
    assert oea_text({"k0": 4, "core": "eager"}) == "4-coreeager"
    assert oea_text({"k0": 4, "mask_padding": True}) == "4-mask_padding"


@pytest.mark.parametrize(
    ("flags", "widest", "refused"),
    [
        ({}, 4, True),
        ({"cuda_graph_bs_decode": [1, 2, 4, 8]}, 8, True),  # 3 is padded to 4
        ({"cuda_graph_bs_decode": [1, 2, 3, 4]}, 4, False),
        ({"cuda_graph_bs_decode": [1, 2, 3, 4]}, 64, False),  # above 4 no graph is replayed
        ({"cuda_graph_bs": [1, 2, 3, 4]}, 4, False),
        ({"cuda_graph_bs": [1, 2, 3, 8]}, 2, False),
        ({"disable_cuda_graph": True}, 64, False),
    ],
)
def test_padding_rows_of_graphs_must_not_open_experts(flags, widest, refused):
    assert bool(padding_obstacle(Oea(k0=4), flags, widest)) == refused
    assert padding_obstacle(Oea(k0=4, mask_padding=True), flags, widest) is None


def test_the_refusal_says_what_is_captured_and_what_to_do():
    why = padding_obstacle(Oea(k0=4), {"cuda_graph_bs_decode": [1, 4]}, 4)

    assert "captured are [1, 4]; fix: capture every batch size up to 4 (cuda_graph_bs_decode" in why
    assert list(oea_obstacles(Oea(k0=4), {}, MODEL, device="cpu", widest=64)) == []
