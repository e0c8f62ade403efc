"""Comparisons of a campaign: which launches, in which turn, with which prompts, and when."""

import pytest

from builders import PROJECT, History, campaign
from sgmatrix.core.errors import Refusal
from sgmatrix.core.layout import Layout
from sgmatrix.plan.plan import make_plan, plan_record
from sgmatrix.plan.rounds import turns

PAIR = {
    "name": "slots",
    "baseline": {"max_running_requests": 4},
    "variant": {"max_running_requests": 8},
    "primary": {"concurrency": 2},
    "launches": {"min": 3, "max": 4},
}
OFF, ON = "max-running-requests-4", "max-running-requests-8"
AXES = {"max_running_requests": [4, 8, 16]}


def plan_of(tmp_path, *pairs, **changes):
    given = campaign(axes=AXES, compare=list(pairs), **changes)
    return make_plan(given, Layout(tmp_path / "results/made-up"), PROJECT)


def order(plan):
    return [(one.cell.removeprefix("max-running-requests-"), one.launch) for one in plan.launches]


def test_rounds_run_in_turn_forwards_and_backwards_with_the_noise_at_their_end(tmp_path):
    plan = plan_of(tmp_path, PAIR)

    # 16 takes part in nothing, and has its one launch
    assert order(plan) == [
        *[("4", "1"), ("8", "1"), ("16", "1"), ("4", "1-noise")],
        *[("4", "2-noise"), ("8", "2"), ("4", "2")],
        *[("4", "3"), ("8", "3"), ("4", "3-noise")],
        *[("4", "4-noise"), ("8", "4"), ("4", "4")],
    ]


def test_without_a_noise_pair_both_arms_have_as_many_launches(tmp_path):
    plan = plan_of(tmp_path, PAIR | {"noise_pair": False, "launches": {"min": 3, "max": 3}})

    assert order(plan) == [
        *[("4", "1"), ("8", "1"), ("16", "1")],
        *[("8", "2"), ("4", "2")],
        *[("4", "3"), ("8", "3")],
    ]


def test_one_axis_at_a_time_an_axis_that_is_not_named_has_its_base_value(tmp_path):
    axes = {**AXES, "mem_fraction": [0.5, 0.4]}
    pair = PAIR | {"noise_pair": False, "launches": {"min": 3, "max": 3}}
    given = campaign(axes=axes, design="one_at_a_time", compare=[pair])
    plan = make_plan(given, Layout(tmp_path / "results/made-up"), PROJECT)

    (compared,) = plan.compared
    assert (compared.baseline, compared.variant) == (
        "mf0.50-max-running-requests-4",
        "mf0.50-max-running-requests-8",
    )
    full = campaign(axes=axes, compare=[pair])
    with pytest.raises(Refusal, match=r"slots.baseline: 2 cells have max_running_requests=4"):
        make_plan(full, Layout(tmp_path / "results/made-up"), PROJECT)


def test_the_launches_of_a_round_have_the_same_prompts(tmp_path):
    plan = plan_of(tmp_path, PAIR)

    def seeds(cell, launch):
        return [point.seed for point in plan.launch(cell, launch).points]

    assert seeds(OFF, "2") == seeds(ON, "2") == seeds(OFF, "2-noise")
    assert seeds(OFF, "1") == seeds(ON, "1") == seeds(OFF, "1-noise")
    assert seeds(OFF, "1") != seeds(OFF, "2")


def test_rounds_above_the_least_run_only_while_undecided(tmp_path):
    plan = plan_of(tmp_path, PAIR)
    optional = {(one.cell, one.launch) for one in plan.launches if one.condition}

    assert optional == {(OFF, "4"), (OFF, "4-noise"), (ON, "4")}
    condition = plan.launch(ON, "4").condition
    assert condition.comparisons == ("slots",)
    assert condition.after == (
        *[(OFF, f"{n}{noise}") for n in range(1, 4) for noise in ("", "-noise")],
        *[(ON, str(n)) for n in range(1, 4)],
    )


def test_launches_that_the_campaign_asks_for_run_in_any_case(tmp_path):
    plan = plan_of(tmp_path, PAIR, launches=4)

    assert {(one.cell, one.launch) for one in plan.launches if one.condition} == {
        (OFF, "4-noise"),
    }


def test_one_baseline_of_two_pairs_is_launched_once_for_both(tmp_path):
    other = PAIR | {"name": "more", "variant": {"max_running_requests": 16}, "noise_pair": False}
    other["launches"] = {"min": 4, "max": 5}
    plan = plan_of(tmp_path, PAIR, other)

    counts = {cell: sum(one.cell == cell for one in plan.launches) for cell in plan.cells}
    assert counts == {OFF: 9, ON: 4, "max-running-requests-16": 5}
    assert plan.compared[1].rounds[4] == {"baseline": "5", "variant": "5"}
    # round 4 is needed by the second one, whatever the first one says of its own arm
    assert plan.launch(OFF, "4").condition is None
    assert plan.launch(ON, "4").condition.comparisons == ("slots",)


@pytest.mark.parametrize(
    ("change", "want"),
    [
        ({"baseline": {"max_running_requests": 5}}, r"slots.baseline: no cell has max_running_re"),
        ({"variant": {"engine": "standin"}}, r"slots.variant: 3 cells have engine=standin"),
        ({"variant": {"max_running_requests": 4}}, r"are the same cell, max-running-requests-4"),
        ({"primary": {"concurrency": 3}}, r"concurrency 3 is no load point of both cells; they"),
        ({"primary": {"request_rate": 3.0}}, r"request_rate 3 is no load point"),
    ],
)
def test_what_is_no_pair_is_refused(tmp_path, change, want):
    with pytest.raises(Refusal, match=want):
        plan_of(tmp_path, PAIR | change)


@pytest.mark.parametrize(
    ("change", "want"),
    [
        ({"launches": {"min": 2}}, "greater than or equal to 3"),
        ({"launches": {"min": 5, "max": 4}}, "max = 4 is below min = 5"),
        ({"metric": "tok_s"}, "Input should be 'tpot_ms_mean'"),
        ({"primary": {}}, "exactly one of concurrency and request_rate"),
    ],
)
def test_a_comparison_that_cannot_decide_is_refused(change, want):
    with pytest.raises(ValueError, match=want):
        campaign(axes=AXES, compare=[PAIR | change])


@pytest.mark.parametrize(
    ("metric", "load", "want"),
    [
        ("goodput_request_s", {}, "metric goodput_request_s needs an objective: load.slo"),
        ("energy_j_per_output_tok", {}, "is not measured on the CPU engine"),
        ("tpot_ms_mean", {"output_len": 1}, "does not exist where load.output_len is 1"),
    ],
)
def test_a_metric_that_no_launch_can_give_is_refused(tmp_path, metric, load, want):
    load = {"concurrency": [1, 2], "input_len": 16, "output_len": 4} | load

    with pytest.raises(Refusal, match=want):
        plan_of(tmp_path, PAIR | {"metric": metric}, load=load)


def test_arms_with_other_requests_are_no_pair(tmp_path):
    more = [{"where": {"max_running_requests": 8}, "load": {"requests": {"min": 24}}}]

    with pytest.raises(Refusal, match="an override gives one of the cells another load"):
        plan_of(tmp_path, PAIR, overrides=more)


def test_two_comparisons_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two comparisons are named slots"):
        campaign(axes=AXES, compare=[PAIR, PAIR])


def test_a_skipped_launch_is_asked_for_anew_when_what_decided_it_changes(tmp_path):
    pair = PAIR | {"noise_pair": False}
    history = History(tmp_path, campaign(axes=AXES, compare=[pair]))
    for number in ("1", "2", "3"):
        history.attempt(OFF, launch=number)
        history.attempt(ON, launch=number)
    history.skip(ON, "4")

    def asked(**change):
        given = campaign(axes=AXES, compare=[pair | change])
        return make_plan(given, history.layout, PROJECT).launch(ON, "4").attempt

    assert asked() == 1
    assert asked(bound_percent=2.0) == 2
    history.attempt(OFF, launch="2")  # measured again: it may say something else
    assert asked() == 2


def test_the_partners_of_a_failed_launch_are_retried_with_it(tmp_path):
    history = History(tmp_path, campaign(axes=AXES, compare=[PAIR]))
    for number in ("1", "2", "3"):
        history.attempt(OFF, launch=number)
        history.attempt(ON, launch=number, **({"reason": "oom_runtime"} if number == "2" else {}))
        history.attempt(OFF, launch=f"{number}-noise")
    history.attempt("max-running-requests-16")
    history.skip(ON, "4")

    def asked(retry):
        plan = make_plan(history.campaign, history.layout, PROJECT, retry_failed=retry)
        return {(one.cell, one.launch): one.attempt for one in plan.launches}

    before, now = asked(False), asked(True)
    again = {key for key in now if now[key] > before[key]}
    # an arm that is repeated alone, long after its partner, is no pair of it; and whether the
    # fourth round is needed is asked again
    assert again == {(OFF, "2"), (ON, "2"), (OFF, "2-noise"), (ON, "4")}


def test_a_cell_of_a_pair_is_repeated_with_the_prompts_of_its_rounds(tmp_path):
    plan = plan_of(tmp_path, PAIR)
    alone = plan.reproduce[OFF]

    names = [*(str(n) for n in range(1, 5)), *(f"{n}-noise" for n in range(1, 5))]
    assert alone["rerun"] == {"launches": names}
    assert plan.reproduce[ON]["rerun"] == {"launches": names[:4]}
    again = make_plan(campaign(**alone), Layout(tmp_path / "elsewhere/made-up"), PROJECT)
    assert {one.launch for one in again.launches} == set(names)
    assert [point.seed for point in again.launch(OFF, "4-noise").points] == [
        point.seed for point in plan.launch(OFF, "4").points
    ]


def test_the_plan_s_record_holds_the_pairs_and_what_decides(tmp_path):
    plan = plan_of(tmp_path, PAIR)
    record = plan_record(plan, campaign(axes=AXES, compare=[PAIR]), None)

    (pair,) = record["comparisons"]
    assert (pair["baseline"], pair["variant"], pair["primary"]) == (
        OFF,
        ON,
        "c0002-i16-o4-random-ids",
    )
    assert pair["rounds"][1] == {"baseline": "2", "variant": "2", "noise": "2-noise"}
    rules = {one["condition"]["rule"] for one in record["launches"] if one["condition"] is not None}
    assert len(rules) == 1


def test_cells_without_a_pair_keep_their_order():
    assert list(turns({"a": 2, "b": 1}, {})) == [("a", "1"), ("b", "1"), ("a", "2")]


def test_a_noise_pair_that_is_added_later_leaves_what_is_measured_alone(tmp_path):
    history = History(tmp_path, campaign(axes=AXES, launches=3))
    for number in ("1", "2", "3"):
        history.attempt(OFF, launch=number)
        history.attempt(ON, launch=number)
    given = campaign(axes=AXES, launches=3, compare=[PAIR])

    plan = make_plan(given, history.layout, PROJECT)

    done = {(one.cell, one.launch) for one in plan.launches if one.is_done(history.layout)}
    assert done == {(cell, n) for cell in (OFF, ON) for n in ("1", "2", "3")}
