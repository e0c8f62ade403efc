"""Axes to cells."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import campaign
from sgmatrix.plan.axes import canonical
from sgmatrix.plan.matrix import expand as expand_matrix


def expand(what):
    """The points of a campaign that has no problem."""
    matrix = expand_matrix(what)
    assert matrix.problems == ()
    return list(matrix.points)


MEND = "fix: correct the values, or remove the condition"
AXES = {"parallelism": ["tp1", "tp2"], "decode_steps": [1, 4, 8], "mem_fraction": [0.8, 0.9]}


def test_full_is_the_product_in_the_order_of_the_file():
    points = expand(campaign(axes=AXES, design="full"))

    assert len(points) == 2 * 3 * 2
    assert points[0] == {"parallelism": "tp1", "decode_steps": 1, "mem_fraction": 0.8}
    assert points[1] == {"parallelism": "tp1", "decode_steps": 1, "mem_fraction": 0.9}
    assert points[-1] == {"parallelism": "tp2", "decode_steps": 8, "mem_fraction": 0.9}


def test_one_at_a_time_is_the_base_and_then_each_axis_in_turn():
    points = expand(campaign(axes=AXES, design="one_at_a_time"))

    assert [tuple(point.values()) for point in points] == [
        ("tp1", 1, 0.8),
        ("tp2", 1, 0.8),
        ("tp1", 4, 0.8),
        ("tp1", 8, 0.8),
        ("tp1", 1, 0.9),
    ]


def test_an_extra_cell_starts_from_the_base_and_comes_last():
    extra = [{"parallelism": "tp2", "mem_fraction": 0.9}, {"stream_interval": 4}]
    points = expand(campaign(axes=AXES, design="one_at_a_time", include=extra))

    assert points[-2:] == [
        {"parallelism": "tp2", "decode_steps": 1, "mem_fraction": 0.9},
        {"parallelism": "tp1", "decode_steps": 1, "mem_fraction": 0.8, "stream_interval": 4},
    ]


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"axes": {"mem_fraction": [0.9, 0.90]}}, "mem_fraction=0.9"),
        ({"axes": {"decode_steps": [8, 1, 8.0]}}, "decode_steps=8"),
        ({"axes": {"x": [None, None], "parallelism": ["tp1"]}}, "parallelism=tp1"),
        ({"axes": {"oea": [{"k0": 4}, {"k0": 4}]}}, "oea={'k0': 4}"),
        ({"axes": AXES, "include": [{"decode_steps": 4}]}, "decode_steps=4"),
    ],
)
@pytest.mark.parametrize("design", ["full", "one_at_a_time"])
def test_the_same_cell_twice_is_refused_and_shown(changes, shown, design):
    problems = expand_matrix(campaign(design=design, **changes)).problems

    assert problems
    for problem in problems:
        assert problem.startswith("axes or include give the same cell twice: ")
        assert problem.endswith("; fix: remove one of the equal values")
    assert any(shown in problem for problem in problems)


@pytest.mark.parametrize(
    ("value", "want"),
    [(8.0, 8), (0.90, 0.9), (8, 8), ("8.0", "8.0"), (True, True), (None, None), (2.0**60, 2.0**60)],
)
def test_a_value_has_one_spelling(value, want):
    assert canonical("x", value) == want
    assert type(canonical("x", value)) is type(want)


axes = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.lists(st.integers(0, 20), min_size=1, max_size=4, unique=True),
    min_size=1,
)


@given(axes=axes)
def test_counts_and_distinctness_hold_for_any_axes(axes):
    full = expand(campaign(axes=axes, design="full"))
    one = expand(campaign(axes=axes, design="one_at_a_time"))

    assert len(full) == math.prod(len(values) for values in axes.values())
    assert len(one) == 1 + sum(len(values) - 1 for values in axes.values())
    assert all(point in full for point in one)
    assert len({tuple(sorted(point.items())) for point in full}) == len(full)
    base = one[0]
    assert all(sum(point[a] != base[a] for a in axes) == 1 for point in one[1:])


# --- exclude -------------------------------------------------------------------------------------


def test_a_cell_is_left_out_when_all_values_of_a_condition_hold():
    what = campaign(
        axes={"parallelism": ["tp1", "tp2"], "context_length": [128, 256]},
        exclude=[{"parallelism": "tp2", "context_length": 256}],
    )
    assert [tuple(point.values()) for point in expand(what)] == [
        ("tp1", 128),
        ("tp1", 256),
        ("tp2", 128),
    ]


def test_a_list_in_a_condition_means_one_of_them_and_null_means_not_set():
    what = campaign(
        axes={"context_length": [None, 128, 256, 512]},
        exclude=[{"context_length": [128.0, 256]}, {"context_length": None}],
    )
    assert expand(what) == [{"context_length": 512}]


@pytest.mark.parametrize(
    ("exclude", "want"),
    [
        (
            [{"context_length": 999}, {"context_length": [1, None]}],
            [
                f"exclude[0]: no cell has context_length=999; {MEND}",
                f"exclude[1]: no cell has context_length=[1, None]; {MEND}",
            ],
        ),
        (
            [{"contextlength": None}],
            ["exclude[0].contextlength: no axis of this campaign, did you mean 'context_length'?"],
        ),
        (
            [{"context_length": [128, 256]}],
            ["exclude leaves no cell; fix: remove a condition of exclude"],
        ),
    ],
)
def test_a_condition_that_does_nothing_or_everything_is_refused(exclude, want):
    what = campaign(axes={"context_length": [128, 256]}, exclude=exclude)

    assert list(expand_matrix(what).problems) == want


def test_true_is_not_one_and_the_engine_may_stand_in_a_condition_without_an_axis():
    axes = {"x": [1, True, 2], "y": ["a"]}
    what = campaign(axes=axes, exclude=[{"x": True, "engine": "standin"}])

    assert [point["x"] for point in expand(what)] == [1, 2]
    assert expand_matrix(what).excluded == ("x=True, y=a",)
