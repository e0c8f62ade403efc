"""From a point of the matrix to a cell: id, flags, arguments, key."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import campaign, campaign_data
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan.axes import flag_arguments, given_by, value_text
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.cells import cell_id, server_flags
from sgmatrix.plan.cells import make_cell as make_real_cell
from sgmatrix.plan.engines import Installation
from sgmatrix.plan.model import ModelFacts
from sgmatrix.plan.overrides import settings_of

MODEL = ModelFacts("tiny", "/models/tiny", None, "d1", 1024)
PATH_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # the wildcard's pattern in common.smk


def engine(**changes):
    given = {
        "name": "standin",
        "python": "/py",
        "env": {"A": "/project/shim"},
        "version": "0.5.23",
        "lock": "l1",
        "client_extension": None,
        "package": "",
        "contents": "c1",
        "plugins": {},
    }
    return Installation(**{**given, **changes})


def make_cell(point, what, installed, model):
    """A cell with the settings that the campaign gives it."""
    return make_real_cell(point, what, installed, model, settings_of(what, point), Path("/project"))


def axes_flags(point, engine_flags):
    """The server flags that the axes of a point and an engine give."""
    return server_flags(given_by(point, {}, []).flags, engine_flags)


def cell(point=None, *, installed=None, model=MODEL, name="made-up", **declared):
    """A cell on an engine with these declared settings."""
    data = campaign_data(campaign=name)
    data["engines"]["standin"] |= {"flags": {}, "env": {"A": "{project}/shim"}, **declared}
    point = point or {"parallelism": "tp1"}
    return make_cell(point, Campaign.model_validate(data), installed or engine(), model)


# --- ids -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "want"),
    [
        ({"parallelism": "tp8", "decode_steps": 8, "mem_fraction": 0.9}, "tp8-ds8-mf0.90"),
        ({"mem_fraction": 0.85, "parallelism": "tp4pp2"}, "tp4pp2-mf0.85"),
        ({"mem_fraction": 0.905}, "mf0.905"),
        ({"engine": "v0.5.23", "parallelism": "tp1"}, "v0.5.23-tp1"),
        ({"parallelism": "tp2", "attention_backend": "fa3"}, "tp2-attention-backend-fa3"),
        ({"parallelism": "tp1", "enable_mixed_chunk": True}, "tp1-enable-mixed-chunk-on"),
        ({"parallelism": "tp1", "enable_mixed_chunk": False}, "tp1-enable-mixed-chunk-off"),
        ({"decode_steps": 1, "no_such_flag": None}, "ds1"),
        ({"no_such_flag": None}, "base"),
        ({"standin_fault": "die_after:30", "parallelism": "tp1"}, "tp1-standin-fault-die-after-30"),
        ({"oea": {"k0": 4}, "parallelism": "tp8"}, "tp8-oea4"),
        ({"oea": {"k0": 4, "p": 0.5}}, "oea4-p0.5"),
        ({"oea": "off"}, "oea-off"),
        ({"a": 1.5, "b": 2}, "a-1.5-b-2"),
    ],
)
def test_an_id_is_read_at_a_glance(point, want):
    assert cell_id(point) == want


VALUES = st.none() | st.booleans() | st.integers(-9, 99) | st.floats(0, 1) | st.text(max_size=9)
POINTS = st.dictionaries(
    st.sampled_from(["parallelism", "engine", "decode_steps", "mem_fraction", "x", "y_z"]),
    VALUES,
    min_size=1,
)


@given(point=POINTS, data=st.data())
def test_an_id_depends_on_the_values_and_not_on_the_order_of_the_file(point, data):
    shuffled = dict(data.draw(st.permutations(list(point.items()))))

    assert cell_id(shuffled) == cell_id(point)


@pytest.mark.parametrize(
    "hostile",
    ["../../etc/passwd", "/tmp/x", "..", ".", "-rf", "", "a/b\\c", "con:1?*", "$(touch PWNED)",
     "`touch PWNED`; rm -rf ~", "x\n\0y", "日本", "a" * 5000, "{cell}", "%s"],
)  # fmt: skip
@pytest.mark.parametrize("axis", ["parallelism", "engine", "x"])
def test_a_hostile_value_makes_a_path_safe_id(axis, hostile):
    name = cell_id({axis: hostile})

    assert PATH_SAFE.fullmatch(name)
    assert ".." not in name
    assert len(name) <= 100


@given(point=POINTS)
def test_any_point_makes_a_path_safe_id(point):
    assert PATH_SAFE.fullmatch(cell_id(point))


def test_a_long_id_is_cut_and_stays_unique():
    one = cell_id({"json_model_override_args": "x" * 120 + "1"})
    two = cell_id({"json_model_override_args": "x" * 120 + "2"})

    assert one[:91] == two[:91] == "json-model-override-args-" + "x" * 66
    assert one[91] == "-"
    assert re.fullmatch("[0-9a-f]{8}", one[92:])
    assert one != two


def test_an_id_of_just_the_limit_is_left_whole():
    assert cell_id({"x": "a" * 98}) == "x-" + "a" * 98


# --- flags and arguments -------------------------------------------------------------------------


def test_axes_are_their_own_flags_and_win_over_the_engine_s():
    point = {
        "engine": "standin",
        "parallelism": "tp4pp2",
        "decode_steps": 8,
        "mem_fraction": 0.85,
        "attention_backend": "fa3",
        "sampling_backend": None,
    }

    flags = axes_flags(point, {"attention_backend": "triton", "sampling_backend": "pytorch"})

    assert flags == {
        "tp_size": 4,
        "pp_size": 2,
        "num_continuous_decode_steps": 8,
        "mem_fraction_static": 0.85,
        "attention_backend": "fa3",
        "sampling_backend": None,  # an axis value of null leaves out the engine's own
    }


def test_arguments_are_sorted_bare_where_true_and_left_out_where_false_or_null():
    flags = {
        "tp_size": 8,
        "enable_mixed_chunk": True,
        "disable_radix_cache": False,
        "dtype": None,
        "mem_fraction_static": 0.9,
        "json_model_override_args": {"b": 1, "a": [2]},
        "x": "a b; $(c)",
        "y": "",
    }

    assert flag_arguments(flags) == [
        "--enable-mixed-chunk",
        "--json-model-override-args",
        '{"a": [2], "b": 1}',
        "--mem-fraction-static",
        "0.9",
        "--tp-size",
        "8",
        "--x",
        "a b; $(c)",
        "--y",
        "",
    ]


@pytest.mark.parametrize(
    ("value", "want"),
    [(None, None), ("a", "a"), (True, "on"), (False, "off"), (8, "8"), (0.9, "0.9"), ({}, "{}")],
)
def test_a_value_has_one_text(value, want):
    assert value_text("x", value) == want


@pytest.mark.parametrize("spelling", ["tp", "tp-size", "tp_size", "tensor_parallel_size"])
def test_every_spelling_of_a_size_counts_for_the_gpus(spelling):
    one = cell({"parallelism": "tp1"}, flags={spelling: 8}, device="cuda")
    other = cell({"x": 1}, flags={spelling: 8}, device="cuda")

    assert (one.flags, one.gpus) == ({"tp_size": 1}, 1)  # the axis wins over the engine
    assert (other.flags, other.gpus) == ({"tp_size": 8, "x": 1}, 8)
    assert other.arguments[-4:] == ("--tp-size", "8", "--x", "1")


def test_an_axis_of_another_spelling_counts_too():
    assert cell({"tp": 4, "pipeline_parallel_size": 2, "dp": 2}, device="cuda").gpus == 16


@pytest.mark.parametrize(
    "name", ["host", "port", "served_model_name", "served-model-name", "model_path", "model"]
)
def test_what_the_launcher_sets_is_refused_in_axes_and_in_engine_flags(name):
    for point, flags in (({name: "x"}, {}), ({}, {name: "x"})):
        with pytest.raises(SgmatrixError) as caught:
            axes_flags(point, flags)

        assert caught.value.code == "config_rejected"
        assert caught.value.facts == f"{name.replace('-', '_')} is set by the workflow itself"


@pytest.mark.parametrize(
    ("value", "near"),
    [
        (85, "; write 0.85"),
        (99, "; write 0.99"),
        (2, "; write 0.02"),
        (1, ""),
        (0, ""),
        (-0.1, ""),
        (100, ""),
        (1.5, ""),
        (True, ""),
        ("0.9", ""),
    ],
)
def test_a_memory_fraction_that_is_no_share_is_refused_with_a_remedy(value, near):
    with pytest.raises(SgmatrixError) as caught:
        axes_flags({"mem_fraction": value}, {})

    assert str(caught.value) == (
        f"config_rejected: mem_fraction = {value!r}, allowed 0 < value < 1; "
        f"fix: it is a share of the memory, not a percentage{near}"
    )


def test_the_engine_s_own_memory_fraction_is_held_to_the_same_rule():
    with pytest.raises(SgmatrixError, match="mem_fraction = 90, "):
        axes_flags({}, {"mem_fraction_static": 90})


# --- cells ---------------------------------------------------------------------------------------


def test_a_cell_says_what_its_server_is():
    made = cell(
        {"parallelism": "tp2dp2", "decode_steps": 4},
        flags={"device": "cpu"},
        min_free_memory_mb=100,
        expected_start_s=3,
        device="cpu",
    )

    assert made.id == "tp2dp2-ds4"
    assert (made.ranks, made.gpus) == (4, 0)  # the CPU engine takes no GPU
    assert (made.engine, made.engine_version, made.python) == ("standin", "0.5.23", "/py")
    assert made.env == {"A": "/project/shim"}
    assert (made.min_free_memory_mb, made.expected_start_s) == (100, 3)
    assert made.axes == {"parallelism": "tp2dp2", "decode_steps": 4}
    assert made.arguments == (
        *("-m", "sglang.launch_server", "--model-path", "/models/tiny", "--device", "cpu"),
        *("--dp-size", "2", "--num-continuous-decode-steps", "4", "--tp-size", "2"),
    )


def test_a_variable_that_another_cell_varies_is_never_inherited_or_left_from_the_engine():
    data = campaign_data(
        axes={"NCCL_ALGO": [None, "Tree"], "environment": [None, "slow"]},
        environments={"slow": {"STANDIN_ARGS": "x"}},
    )
    data["engines"]["standin"]["env"] = {"NCCL_ALGO": "Ring", "KEPT": "1"}
    what = Campaign.model_validate(data)

    base = make_cell({"NCCL_ALGO": None, "environment": None}, what, engine(), MODEL)
    tree = make_cell({"NCCL_ALGO": "Tree", "environment": "slow"}, what, engine(), MODEL)

    assert (base.env, base.unset) == ({"KEPT": "1"}, ("NCCL_ALGO", "STANDIN_ARGS"))
    assert tree.env == {"KEPT": "1", "NCCL_ALGO": "Tree", "STANDIN_ARGS": "x"}
    assert tree.unset == ()


def test_a_flag_axis_of_null_leaves_out_what_the_engine_gives():
    made = cell({"parallelism": "tp1", "stream_interval": None}, flags={"stream_interval": 4})

    assert "--stream-interval" not in made.arguments
    assert made.key == cell({"parallelism": "tp1", "stream_interval": None}).key


def test_on_gpus_a_cell_takes_one_for_each_rank():
    assert cell({"parallelism": "tp4pp2"}, device="cuda").gpus == 8


BASE = cell().key


@pytest.mark.parametrize(
    "changed",
    [
        cell({"parallelism": "tp2"}),
        cell({"parallelism": "tp1", "decode_steps": 2}),
        cell(flags={"device": "cpu"}),
        cell(env={"A": "{project}/other"}),
        cell(env={"A": "{project}/shim", "B": "1"}),
        cell(installed=engine(version="0.5.24")),
        cell(installed=engine(lock="l2")),
        cell(model=ModelFacts("tiny", "/models/tiny", None, "d2", 1024)),
    ],
    ids=["axis", "flag", "engine flag", "env", "more env", "version", "lock", "model"],
)
def test_the_key_changes_with_what_makes_the_server(changed):
    assert re.fullmatch("[0-9a-f]{64}", BASE)
    assert changed.key != BASE


@pytest.mark.parametrize(
    "same",
    [
        cell(),
        cell(model=ModelFacts("tiny", "/somewhere/else", None, "d1", 1024)),
        cell(installed=engine(python="/moved/py", env={"A": "/moved/shim"})),
        cell(name="another-campaign"),
        cell({"parallelism": "tp1", "x": None}),
        cell(min_free_memory_mb=5, expected_start_s=9),
        cell(flags={"dtype": None, "disable_radix_cache": False}),
    ],
    ids=[
        "same",
        "model's folder",
        "project's folder",
        "name",
        "unset axis",
        "expected",
        "unset flags",
    ],
)
def test_the_key_does_not_change_with_places_and_names(same):
    assert same.key == BASE


def test_the_key_does_not_depend_on_the_order_in_the_file():
    one = cell({"x": 1, "y": {"a": 1, "b": 2}}, env={"A": "1", "B": "2"}, flags={"c": 1, "d": 2})
    two = cell({"y": {"b": 2, "a": 1}, "x": 1}, env={"B": "2", "A": "1"}, flags={"d": 2, "c": 1})

    assert (one.key, one.id, one.arguments) == (two.key, two.id, two.arguments)


def test_every_cell_of_a_campaign_has_a_key_of_its_own():
    what = campaign(axes={"parallelism": ["tp1", "tp2"], "decode_steps": [None, 1, 2]})
    points = [{"parallelism": p, "decode_steps": d} for p in ("tp1", "tp2") for d in (None, 1, 2)]
    keys = {make_cell(point, what, engine(), MODEL).key for point in points}

    assert len(keys) == 6


# --- two axes, one flag --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ({"mem_fraction": 0.5, "mem_fraction_static": 0.4}, "both set the server flag mem_frac"),
        ({"parallelism": "tp1", "tp_size": 2}, "axes parallelism and tp_size both set the server"),
        ({"tp_size": "8"}, "tp_size = '8'"),
        ({"tp_size": 0}, "tp_size = 0"),
        ({"ep_size": 1.5}, "ep_size = 1.5"),
        ({"dp_size": True}, "dp_size = True"),
    ],
)
def test_flags_that_would_contradict_the_cells_name_are_refused(point, words):
    with pytest.raises(SgmatrixError, match=words):
        axes_flags(point, {})
