"""What axis values mean: flags, variables, patches; two of them may not set the same thing."""

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan.axes import axis_flags, canonical, flag_arguments, given_by, id_part, value_text

ENVIRONMENTS = {
    "p2p-off": {"NCCL_P2P_DISABLE": "1"},
    "few-channels": {"NCCL_MAX_NCHANNELS": "2"},
    "p2p-on": {"NCCL_P2P_DISABLE": "0"},
}


def given(point):
    return given_by(point, ENVIRONMENTS, ["autotune", "tiles"])


def refusal(point):
    with pytest.raises(SgmatrixError) as caught:
        given(point)
    assert caught.value.code == "config_rejected"
    return str(caught.value).removeprefix("config_rejected: ")


def test_every_kind_of_axis_sets_what_it_is_for():
    found = given(
        {
            "engine": "sglang-cuda",
            "parallelism": "tp8ep8",
            "mem_fraction": 0.75,
            "disable_radix_cache": True,
            "NCCL_ALGO": "Ring",
            "environment": "p2p-off+few-channels",
            "patches": "tiles+autotune",
            "oea": {"k0": 4, "p": 0.9},
        }
    )

    assert found.flags == {
        "tp_size": 8,
        "ep_size": 8,
        "mem_fraction_static": 0.75,
        "disable_radix_cache": True,
    }
    assert found.env == {
        "NCCL_ALGO": "Ring",
        "NCCL_P2P_DISABLE": "1",
        "NCCL_MAX_NCHANNELS": "2",
        "OEA_ENABLE": "1",
        "OEA_K0": "4",
        "OEA_P": "0.9",
    }
    assert found.patches == ["tiles", "autotune"]  # made in this order


def test_what_is_null_leaves_out_what_others_may_give():
    found = given({"environment": None, "patches": None, "NCCL_ALGO": None, "x": None})

    assert (found.flags, found.env, found.patches) == ({"x": None}, {}, [])
    assert found.unset == {"NCCL_ALGO"}


@pytest.mark.parametrize("off", ["off", False, None])
def test_oea_has_one_spelling_of_off_and_says_so_to_the_plug_in(off):
    assert canonical("oea", off) == "off"
    assert given({"oea": off}).env == {"OEA_ENABLE": "0"}
    assert (value_text("oea", off), id_part("oea", off)) == ("off", "oea-off")


@pytest.mark.parametrize(
    ("point", "want"),
    [
        (
            {"environment": "p2p-of"},
            (
                "axes.environment: 'p2p-of' is not one of environments: ['few-channels', "
                "'p2p-off', 'p2p-on']; fix: declare it below `environments`, or write null for none"
            ),
        ),
        (
            {"environment": False},
            (
                "axes.environment: 'False' is not one of environments: ['few-channels', "
                "'p2p-off', 'p2p-on']; fix: declare it below `environments`, or write null for none"
            ),
        ),
        (
            {"patches": "autotune+autotune"},
            "axes.patches: 'autotune+autotune' names one twice; fix: name each once",
        ),
        (
            {"environment": "p2p-off+p2p-on"},
            (
                "axes.environment: 'p2p-off+p2p-on' sets NCCL_P2P_DISABLE twice; "
                "fix: keep it in one of the sets"
            ),
        ),
        (
            {"NCCL_ALGO": True},
            (
                "axes.NCCL_ALGO: True is no text; "
                "fix: write what the variable is to hold in quotes, or null to leave it out"
            ),
        ),
        (
            {"NCCL_P2P_DISABLE": "1", "environment": "p2p-on"},
            (
                "axes NCCL_P2P_DISABLE and environment both set the variable NCCL_P2P_DISABLE; "
                "fix: keep one of them"
            ),
        ),
        *[
            (
                {"decode_steps": value},
                (
                    f"axes.decode_steps: {value!r} is no whole number of 1 or more; "
                    "fix: write one, or null for the engine's own"
                ),
            )
            for value in (True, False, "8", 1.5, 0, -3)
        ],
        (
            {"oea": True},
            (
                "axes.oea: Input should be a valid dictionary or instance of Oea, value True; "
                "fix: write off, or a mapping such as {k0: 4}"
            ),
        ),
        (
            {"oea": {"k0": 0}},
            (
                "axes.oea.k0: Input should be greater than or equal to 1, value {'k0': 0}; "
                "fix: write off, or a mapping such as {k0: 4}"
            ),
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_mend(point, want):
    assert refusal(point) == want


def test_a_variable_s_number_is_the_text_that_the_process_gets():
    assert canonical("NCCL_NCHANNELS", 8) == "8"
    assert canonical("nccl_nchannels", 8) == 8


@pytest.mark.parametrize(
    ("axis", "value", "part", "text"),
    [
        ("environment", "p2p-off+few-channels", "p2p-off-few-channels", "p2p-off+few-channels"),
        ("patches", "autotune", "autotune", "autotune"),
        ("NCCL_ALGO", "Ring", "NCCL-ALGO-Ring", "Ring"),
        ("oea", {"k0": 4}, "oea4", "4"),
        ("oea", {"k0": 4, "fill": "mask"}, "oea4-fillmask", "4-fillmask"),
        ("cuda_graph_bs", [1, 2, 4], "cuda-graph-bs-1-2-4", "[1, 2, 4]"),
    ],
)
def test_values_as_people_read_them(axis, value, part, text):
    assert (id_part(axis, value), value_text(axis, value)) == (part, text)


def test_a_list_is_several_arguments_of_one_flag():
    assert flag_arguments({"cuda_graph_bs": [1, 2, 4], "off": False}) == [
        *("--cuda-graph-bs", "1", "2", "4")
    ]


@pytest.mark.parametrize("axis", ["engine", "oea", "environment", "patches", "NCCL_ALGO"])
def test_axes_that_are_no_flags_have_nothing_to_be_audited(axis):
    assert axis_flags(axis, ["x"]) == []
