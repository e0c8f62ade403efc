"""What is other for some cells: launches, load points, deadlines, flags, environment."""

import pytest

from builders import PROJECT, campaign
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.layout import Layout
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.plan import make_plan

AXES = {"parallelism": ["tp1", "tp2", "tp4"], "decode_steps": [1, 4]}


def plan(tmp_path, *overrides, **changes):
    what = campaign(axes=AXES, overrides=list(overrides), **changes)
    return make_plan(what, Layout(tmp_path / "results" / what.campaign), PROJECT)


def loads(made, cell):
    return [
        point.load_id.removesuffix("-random-ids")
        for launch, point in made.points()
        if launch.cell == cell
    ]


def test_load_points_of_some_cells(tmp_path):
    load = {"concurrency": [4, 1], "output_len": 2, "requests": {"min": 3}}

    made = plan(tmp_path, {"where": {"parallelism": ["tp2", "tp4"]}, "load": load})

    assert loads(made, "tp1-ds1") == ["c0001-i16-o4", "c0002-i16-o4"]
    assert loads(made, "tp2-ds1") == loads(made, "tp4-ds4") == ["c0001-i16-o2", "c0004-i16-o2"]
    points = {p.load_id: p for launch, p in made.points() if launch.cell == "tp2-ds1"}
    assert points["c0001-i16-o2-random-ids"].requests == 4  # per_concurrency keeps its default


def test_launches_of_some_cells_come_in_their_place_of_the_order(tmp_path):
    made = plan(tmp_path, {"where": {"parallelism": "tp2", "decode_steps": 1}, "launches": 3})

    launches = [(one.launch, one.cell) for one in made.launches]
    assert launches[6:] == [("2", "tp2-ds1"), ("3", "tp2-ds1")]
    assert len(launches) == 8


def test_flags_and_variables_of_some_cells_make_other_servers_of_them(tmp_path):
    plain = plan(tmp_path)
    made = plan(
        tmp_path,
        {
            "where": {"parallelism": "tp2"},
            "flags": {"max-running-requests": 8, "standin_ready_ms": 5},
            "env": {"NCCL_ALGO": "Tree"},
        },
    )

    changed = {cell for cell in made.cells if made.cells[cell].key != plain.cells[cell].key}
    assert changed == {"tp2-ds1", "tp2-ds4"}
    cell = made.cells["tp2-ds1"]
    assert (cell.flags["max_running_requests"], cell.flags["standin_ready_ms"]) == (8, 5)
    assert cell.env["NCCL_ALGO"] == "Tree"
    assert "NCCL_ALGO" not in made.cells["tp1-ds1"].env


def test_a_later_override_wins_over_an_earlier_one(tmp_path):
    made = plan(
        tmp_path,
        {"where": {}, "deadlines": {"start_s": 100, "point_s": 7}, "launches": 2},
        {"where": {"decode_steps": 4}, "deadlines": {"start_s": 200}, "launches": 1},
    )

    assert made.cells["tp1-ds1"].deadlines["start_s"] == 100
    assert made.cells["tp1-ds4"].deadlines == {
        **made.cells["tp1-ds1"].deadlines,
        "start_s": 200,
        "point_s": 7,
    }
    assert {one.cell for one in made.launches if one.launch == "2"} == {
        *("tp1-ds1", "tp2-ds1", "tp4-ds1")
    }


def test_neither_launches_nor_deadlines_are_part_of_the_key(tmp_path):
    plain = plan(tmp_path)
    made = plan(tmp_path, {"where": {}, "deadlines": {"start_s": 100}, "launches": 2})

    assert [c.key for c in made.cells.values()] == [c.key for c in plain.cells.values()]


def test_a_condition_that_meets_no_cell_is_refused(tmp_path):
    with pytest.raises(SgmatrixError) as caught:
        plan(tmp_path, {"where": {}, "launches": 2}, {"where": {"parallelism": "tp3"}})

    assert str(caught.value) == (
        "config_rejected: overrides[1].where: no cell has parallelism=tp3; "
        "fix: correct the values, or remove the condition"
    )


@pytest.mark.parametrize(
    ("override", "want"),
    [
        ({"flags": {"tp": 4}}, "overrides set the server flag tp_size, which an axis sets as well"),
        ({"env": {"PYTHONPATH": "/x"}}, "PYTHONPATH in an axis or an override could hide"),
        ({"flags": {"port": 1}}, "port is set by the workflow itself"),
        ({"flags": {"mem_fraction_static": 85}}, "mem_fraction = 85, allowed 0 < value < 1"),
    ],
)
def test_an_override_is_held_to_the_rules_of_axes(tmp_path, override, want):
    with pytest.raises(SgmatrixError) as caught:
        plan(tmp_path, {"where": {}, **override})

    assert caught.value.problems[0].startswith(f"cell tp1-ds1: {want}")


def test_a_load_point_over_the_context_of_the_model_is_found_per_cell(tmp_path):
    with pytest.raises(SgmatrixError) as caught:
        plan(tmp_path, {"where": {"parallelism": "tp2"}, "load": {"input_len": 100_000}})

    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "cell tp2-ds1",
        "cell tp2-ds4",
    ]


def test_a_cell_s_own_campaign_is_that_cell_again(tmp_path):
    made = plan(
        tmp_path,
        {
            "where": {"parallelism": "tp2"},
            "flags": {"max_running_requests": 8},
            "env": {"NCCL_ALGO": "Tree"},
            "launches": 2,
            "load": {"concurrency": [4], "input_len": 8},
            "deadlines": {"point_s": 3},
        },
        environments={"a": {"A": "1"}, "b": {"B": "1"}},
        include=[{"environment": "a"}],
    )

    for cell in made.cells.values():
        alone = Campaign.model_validate(made.reproduce[cell.id])
        again = make_plan(alone, Layout(tmp_path / "results" / "again"), PROJECT)
        assert list(again.cells.values()) == [cell]
        keys = [p.key for launch, p in made.points() if launch.cell == cell.id]
        assert [p.key for _, p in again.points()] == keys
    assert list(made.reproduce["tp1-ds1-a"]["environments"]) == ["a"]
