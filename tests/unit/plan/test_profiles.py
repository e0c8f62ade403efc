"""What a profile offers, which cells have none, and when it is asked for anew."""

import pytest

from builders import PROJECT, campaign
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import write_json
from sgmatrix.core.layout import Layout
from sgmatrix.plan.plan import make_plan, plan_record
from sgmatrix.plan.profiles import AskedProfile

AXES = {"parallelism": ["tp1", "tp2"]}


def planned(tmp_path, cell="tp2", concurrency=None, steps=10, *, retry=False, **changes):
    given = campaign(**{"axes": AXES, **changes})
    layout = Layout(tmp_path / "results/made-up")
    asked = AskedProfile(cell, concurrency, steps)
    return make_plan(given, layout, PROJECT, profile=asked, retry_failed=retry)


def profile(tmp_path, *args, **changes):
    (one,) = planned(tmp_path, *args, **changes).profiles
    return one


def test_no_campaign_has_a_profile_by_itself(tmp_path):
    given = campaign(axes=AXES)
    plan = make_plan(given, Layout(tmp_path), PROJECT)

    assert plan.profiles == ()
    assert plan_record(plan, given, None)["profiles"] == []


def test_it_offers_one_wave_at_the_largest_concurrency_in_the_shapes_of_the_cell(tmp_path):
    load = {"concurrency": [1, 8, 2], "input_len": 16, "output_len": 64}
    one = profile(tmp_path, load=load)
    (point,) = one.points

    assert (one.cell, one.launch, one.attempt, one.steps, one.running) == (
        "tp2",
        "profile",
        1,
        10,
        8,
    )
    assert (point.concurrency, point.requests, point.input_len, point.output_len) == (8, 8, 16, 64)


def test_an_answer_is_long_enough_for_the_steps_to_have_a_middle(tmp_path):
    load = {"concurrency": [2], "input_len": 16, "output_len": 4}

    assert profile(tmp_path, load=load, steps=10).points[0].output_len == 40


def test_the_concurrency_that_is_asked_for_goes_first(tmp_path):
    one = profile(tmp_path, concurrency=5)

    assert (one.points[0].concurrency, one.running) == (5, 5)


def test_it_does_not_wait_for_more_requests_than_the_server_decodes_at_once(tmp_path):
    axes = {"max_running_requests": [3]}
    plan = make_plan(campaign(axes=axes), Layout(tmp_path), PROJECT)
    (cell,) = plan.cells
    one = profile(tmp_path, cell=cell, axes=axes, concurrency=8)

    assert (one.points[0].concurrency, one.running) == (8, 3)


def test_a_load_that_is_a_rate_only_needs_a_concurrency(tmp_path):
    load = {"concurrency": [], "request_rate": [2.0], "input_len": 16, "output_len": 4}

    with pytest.raises(SgmatrixError, match="tp2 is a request rate") as caught:
        profile(tmp_path, load=load)
    assert "concurrency=" in caught.value.fix

    assert profile(tmp_path, load=load, concurrency=4).points[0].concurrency == 4
    assert profile(tmp_path, load={**load, "max_concurrency": 6}).points[0].concurrency == 6


@pytest.mark.parametrize(("wrong", "near"), [("tp3", "tp2, tp1"), ("zzzz", "tp1, tp2")])
def test_a_cell_that_is_not_there_is_refused_with_the_nearest(tmp_path, wrong, near):
    with pytest.raises(SgmatrixError, match=f"cell={wrong} is no cell") as caught:
        planned(tmp_path, cell=wrong)

    assert caught.value.code == "config_rejected"
    assert caught.value.fix == f"one of {near}"


def done(tmp_path, one, *, status="ok", key=None):
    folder = Layout(tmp_path / "results/made-up").attempt("tp2", "profile", one.attempt)
    write_json(folder / "teardown.json", {"asked_attempt": one.attempt})
    write_json(folder / "profile.json", {"status": status, "key": key or one.key})


def test_a_profile_that_is_there_is_not_asked_for_again(tmp_path):
    one = profile(tmp_path)
    layout = Layout(tmp_path / "results/made-up")
    assert not one.is_done(layout)
    done(tmp_path, one)

    again = profile(tmp_path)
    assert (again.attempt, again.is_done(layout)) == (1, True)


@pytest.mark.parametrize("changes", [{"steps": 11}, {"concurrency": 3}])
def test_another_one_is_a_new_attempt(tmp_path, changes):
    load = {"concurrency": [1, 2], "input_len": 16, "output_len": 64}  # long enough for both
    done(tmp_path, profile(tmp_path, load=load))

    assert profile(tmp_path, load=load).attempt == 1
    assert profile(tmp_path, load=load, **changes).attempt == 2


def test_one_that_failed_is_done_again_when_that_is_asked(tmp_path):
    done(tmp_path, profile(tmp_path), status="failed")

    assert profile(tmp_path).attempt == 1
    assert profile(tmp_path, retry=True).attempt == 2


def test_one_that_was_ended_from_outside_is_done_again(tmp_path):
    layout = Layout(tmp_path / "results/made-up")
    layout.attempt("tp2", "profile", 1).mkdir(parents=True)

    assert profile(tmp_path).attempt == 2
