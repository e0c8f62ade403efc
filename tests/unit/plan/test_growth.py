"""Where a load point goes that was added to a campaign later."""

import pytest

from builders import PROJECT, History, campaign
from sgmatrix.plan.growth import share_out
from sgmatrix.plan.plan import make_plan


def loads(*concurrencies):
    return {"concurrency": list(concurrencies), "input_len": 16, "output_len": 4}


def ids(*concurrencies):
    return [f"c{c:04d}-i16-o4-random-ids" for c in concurrencies]


@pytest.fixture
def grown(tmp_path):
    """A finished launch of tp1 at 1 and 2; returns the plan for other concurrencies."""
    history = History(tmp_path, campaign(load=loads(1, 2)))
    history.attempt("tp1")

    def plan(*concurrencies, **changes):
        what = campaign(load=loads(*concurrencies), **changes)
        made = make_plan(what, history.layout, PROJECT)
        return [
            (one.launch, one.attempt, [p.concurrency for p in one.points]) for one in made.launches
        ]

    return history, plan


def test_nothing_added_changes_nothing(grown):
    assert grown[1](1, 2) == [("1", 1, [1, 2])]


@pytest.mark.parametrize("added", [(1, 2, 8), (1, 2, 4, 8)])
def test_points_at_the_end_go_to_an_extra_launch(grown, added):
    assert grown[1](*added) == [("1", 1, [1, 2]), ("1-extra1", 1, list(added[2:]))]


def test_a_point_in_the_middle_does_not_measure_the_later_ones_again(tmp_path):
    history = History(tmp_path, campaign(load=loads(1, 8)))
    history.attempt("tp1")
    plan = make_plan(campaign(load=loads(1, 4, 8)), history.layout, PROJECT)

    assert [(one.launch, [p.concurrency for p in one.points]) for one in plan.launches] == [
        ("1", [1, 8]),
        ("1-extra1", [4]),
    ]


def test_an_extra_launch_sees_the_same_prompts_as_its_launch_would(grown):
    history, _ = grown
    plan = make_plan(campaign(load=loads(1, 2, 8)), history.layout, PROJECT)
    fresh = make_plan(campaign(campaign="other", load=loads(1, 2, 8)), history.layout, PROJECT)

    seeds = {p.load_id: p.seed for one in plan.launches for p in one.points}
    assert len(seeds) == 3
    # the history of `made-up` is not that of `other`, whose one launch serves all three
    assert seeds == {p.load_id: p.seed for one in fresh.launches for p in one.points}


def test_another_server_is_measured_whole_in_its_launch(grown):
    changed = {"axes": {"parallelism": ["tp1"], "context_length": [512]}, "include": []}
    (launch,) = grown[1](1, 2, 8, **changed)

    assert launch[2] == [1, 2, 8]


def test_an_unfinished_launch_takes_everything(tmp_path):
    history = History(tmp_path, campaign(load=loads(1, 2)))
    history.attempt("tp1", points=1, complete=False)
    plan = make_plan(campaign(load=loads(1, 2, 8)), history.layout, PROJECT)

    assert [(one.launch, one.attempt, len(one.points)) for one in plan.launches] == [("1", 2, 3)]


def test_a_point_that_is_no_longer_wanted_leaves_the_plan_alone(grown):
    assert grown[1](2) == [("1", 1, [2])]


def test_extra_launches_are_remembered_and_a_second_one_follows(grown):
    history, _ = grown
    key = history.plan["cells"]["tp1"]["key"]
    bigger = History(history.layout.root.parents[1], campaign(load=loads(1, 2, 8)))
    bigger.attempt("tp1", launch="1-extra1")

    assert share_out(history.layout, "tp1", "1", key, ids(1, 2, 4, 8)) == [
        ("1", ids(1, 2)),
        ("1-extra1", ids(8)),
        ("1-extra2", ids(4)),
    ]
