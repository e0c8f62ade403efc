"""From points to verdicts: what counts as a value, as a round, as a launch that is not needed."""

import math

import pytest

from sgmatrix.analysis.ab.compare import conclude
from sgmatrix.analysis.ab.inputs import Series
from sgmatrix.analysis.compared import (
    compared_kind,
    comparison_rows,
    concluded,
    finished_rounds,
    planned_keys,
    rules_of,
    series_of,
    value_of,
    why_not_needed,
)
from sgmatrix.analysis.side_by_side import rounds_apart

LOW, HIGH = "c1", "c2"
# ten percent slower in each of three rounds, within a hundredth of a percent of it
OFF, WORSE = (10.0, 20.0, 30.0), (11.0, 22.002, 32.997)
# a tenth up, a tenth down: nothing that three rounds could tell
UNSURE = (11.0, 18.0, 30.5)


def planned(name="pair", *, variant="on", noise_pair=False, rounds=5, **changes):
    """A comparison as `plan.json` holds it: decided at HIGH, 3 to 5 launches per arm."""

    def one(number):
        if not noise_pair:
            return {"baseline": str(number), "variant": str(number)}
        return {
            "baseline": str(2 * number - 1),
            "variant": str(number),
            "noise": str(2 * number),
        }

    return {
        "name": name,
        "baseline": "off",
        "variant": variant,
        "metric": "tpot_ms_mean",
        "primary": HIGH,
        "loads": (LOW, HIGH),
        "bound_percent": 1.0,
        "least": 3,
        "most": rounds,
        "noise_pair": noise_pair,
        "rounds": tuple(one(number) for number in range(1, rounds + 1)),
        **changes,
    }


def row(value=1.0, status="ok", **more):
    return {"status": status, "reason": None, "validity": "valid", "tpot_ms_mean": value, **more}


class Found:
    """Points by (cell, launch, load); the same value at both loads."""

    def __init__(self, **cells):
        self.rows = {}
        for cell, values in cells.items():
            for launch, value in enumerate(values, 1):
                self.put(cell, launch, row(value))

    def put(self, cell, launch, given, loads=(LOW, HIGH)):
        for load in loads:
            self.rows[cell, str(launch), load] = given

    def __call__(self, cell, launch, load):
        return self.rows.get((cell, launch, load))

    def table(self):
        """The same as rows of `points`, behind each a superseded one that is far off."""
        for (cell, launch, load), given in self.rows.items():
            place = {"cell": cell, "launch": launch, "load_id": load}
            yield {**given, **place, "current": True}
            yield {**given, **place, "current": False, "tpot_ms_mean": 1e6}


NOT_NEEDED = {"status": "skipped", "reason": "ab_decided"}


# --- one value -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "kind"),
    [
        *[("tpot_ms_mean", "latency"), ("ttft_ms_p99", "latency"), ("e2e_ms_p50", "latency")],
        *[("output_tok_s", "throughput"), ("goodput_request_s", "throughput")],
        ("energy_j_per_output_tok", "throughput"),
    ],
)
def test_flags_bar_a_metric_by_its_kind(metric, kind):
    assert compared_kind(metric) == kind


@pytest.mark.parametrize(
    ("point", "want"),
    [
        (row(2.5), 2.5),
        (row(2), 2.0),
        (None, None),
        (row(2.5, status="failed"), None),
        (row(2.5, status="skipped"), None),
        (row(2.5, status="not_run"), None),
        (row(None), None),
        (row(0.0), None),  # log(0) is no difference
        (row(-1.0), None),
        (row(math.inf), None),
        (row(math.nan), None),
        ({"status": "ok", "validity": "valid"}, None),
        (row(2.5, validity=None), 2.5),
        (row(2.5, validity="no_telemetry"), 2.5),
        (row(2.5, validity="rate_limited"), 2.5),  # bars rates, not latencies
        (row(2.5, validity="queue_limited"), None),
        (row(2.5, validity="queue_limited", axis_max_running_requests="8"), 2.5),
        (row(2.5, validity="no_telemetry,cold"), None),
        (row(2.5, validity="a_flag_of_a_later_version"), None),
    ],
)
def test_a_value_is_a_measured_one_that_no_flag_bars(point, want):
    assert value_of(point, "tpot_ms_mean") == want


def test_a_rate_is_barred_by_what_bars_rates():
    limited = {"status": "ok", "output_tok_s": 7.0}

    assert value_of({**limited, "validity": "rate_limited"}, "output_tok_s") is None
    assert value_of({**limited, "validity": "queue_limited"}, "output_tok_s") == 7.0


# --- values by round -----------------------------------------------------------------------------


def test_a_series_has_the_values_of_the_first_rounds_by_arm_and_load():
    found = Found(off=(10, 20, 30), on=(11, 22, 33))
    found.put("on", 2, row(22, validity="cold"), loads=(HIGH,))

    assert series_of(planned(), found, 2) == (
        Series(LOW, "tpot_ms_mean", (10.0, 20.0), (11.0, 22.0)),
        Series(HIGH, "tpot_ms_mean", (10.0, 20.0), (11.0, None)),
    )


def test_the_noise_is_the_second_launch_of_the_baseline_in_each_round():
    found = Found(off=(10, 12, 20, 24), on=(11, 22))

    low, _ = series_of(planned(noise_pair=True), found, 2)

    assert low == Series(
        LOW, "tpot_ms_mean", (10.0, 20.0), (11.0, 22.0), aa=((10.0, 12.0), (20.0, 24.0))
    )


def test_rules_are_those_of_the_plan():
    rules = rules_of(planned(bound_percent=2.5))

    assert (rules.primary_load, rules.primary_metric) == (HIGH, "tpot_ms_mean")
    assert (rules.bound_pct, rules.launches_min, rules.launches_budget) == (2.5, 3, 5)


# --- rounds --------------------------------------------------------------------------------------


def test_a_round_is_finished_when_both_arms_have_a_point():
    assert finished_rounds(planned(), Found()) == 0
    assert finished_rounds(planned(), Found(off=(1, 1, 1), on=(1, 1))) == 2
    assert finished_rounds(planned(), Found(off=(1,) * 9, on=(1,) * 9)) == 5


@pytest.mark.parametrize(
    ("point", "rounds"),
    [
        ({"status": "failed", "reason": "server_crash"}, 3),  # a result
        ({"status": "skipped", "reason": "server_crash"}, 3),  # of a launch that failed
        (NOT_NEEDED, 1),
        ({"status": "not_run", "reason": "interrupted"}, 1),
        ({"status": "not_run"}, 1),
    ],
)
def test_a_failed_launch_ends_its_round_one_that_did_not_run_ends_the_count(point, rounds):
    found = Found(off=(1, 1, 1), on=(1, 1, 1))
    found.put("on", 2, point)

    assert finished_rounds(planned(), found) == rounds


def test_a_launch_that_served_one_load_of_two_ends_its_round():
    found = Found(off=(1, 1), on=(1,))
    found.put("on", 2, row(), loads=(LOW,))

    assert finished_rounds(planned(), found) == 2


# --- whether a launch is needed ------------------------------------------------------------------


def launch(number, *names, cell="on"):
    return {"cell": cell, "launch": str(number), "condition": {"comparisons": names or ("pair",)}}


def test_a_decided_comparison_needs_no_further_launch():
    found = Found(off=OFF, on=WORSE)

    assert why_not_needed([planned()], launch(4), found) == "pair: c2: worse at look 1"


def test_an_undecided_one_does():
    assert why_not_needed([planned()], launch(4), Found(off=OFF, on=UNSURE)) is None


def test_only_the_rounds_before_a_launch_decide_about_it():
    found = Found(off=(*OFF, 40), on=(*UNSURE, 44))

    assert why_not_needed([planned()], launch(4), found) is None
    # a round that was not needed is no value, and undoes no stop
    found = Found(off=OFF, on=WORSE)
    for cell in ("off", "on"):
        found.put(cell, 4, NOT_NEEDED)
    assert why_not_needed([planned()], launch(5), found) == "pair: c2: worse at look 1"


def test_the_last_round_of_the_budget_is_run_before_it_counts_as_used():
    found = Found(off=(*OFF, 10.0), on=UNSURE)  # the other arm of round 4 has run

    assert why_not_needed([planned(rounds=4)], launch(4), found) is None


def test_a_launch_of_two_comparisons_is_needed_while_one_is_undecided():
    two = [planned(), planned("other", variant="more")]
    both = launch(4, "pair", "other", cell="off")

    assert why_not_needed(two, both, Found(off=OFF, on=WORSE, more=UNSURE)) is None
    assert why_not_needed(two, both, Found(off=OFF, on=UNSURE, more=WORSE)) is None
    assert why_not_needed(two, both, Found(off=OFF, on=WORSE, more=WORSE)) == (
        "pair: c2: worse at look 1; other: c2: worse at look 1"
    )


def test_a_comparison_that_a_launch_is_not_part_of_has_no_say():
    two = [planned(), planned("other", variant="more")]

    found = Found(off=OFF, on=WORSE, more=UNSURE)
    assert why_not_needed(two, launch(4), found) == "pair: c2: worse at look 1"


def test_the_noise_launch_of_a_round_is_decided_with_it():
    one = planned(noise_pair=True)
    found = Found(off=[value for value in OFF for _ in range(2)], on=WORSE)

    assert why_not_needed([one], launch(8, cell="off"), found) == "pair: c2: worse at look 1"


def test_a_launch_in_no_round_is_named():
    with pytest.raises(ValueError, match="on, launch 6, is in no round of pair"):
        why_not_needed([planned()], launch(6), Found())


# --- the table -----------------------------------------------------------------------------------


def test_the_rows_say_what_is_concluded_from_the_current_points():
    one, found = planned(), Found(off=OFF, on=WORSE)
    made = conclude(series_of(one, found, 3), rules_of(one), 3)

    rows = list(comparison_rows("made-up", [one], found.table()))

    assert [(r["load_id"], r["primary"]) for r in rows] == [(LOW, False), (HIGH, True)]
    high, want = rows[1], made.results[1]
    assert (high["campaign"], high["comparison"]) == ("made-up", "pair")
    assert (high["baseline"], high["variant"], high["metric"]) == ("off", "on", "tpot_ms_mean")
    assert (high["verdict"], high["verdict_text"]) == ("worse", "worse")
    # the mean of log 1.1, log 1.1001 and log 1.0999
    assert high["effect_percent"] == pytest.approx(10.0, abs=1e-4)
    # 10 x 20 x 30 = 6000
    assert high["baseline_mean"] == pytest.approx(6000 ** (1 / 3))
    assert (high["pairs"], high["left_out"], high["noise_pairs"]) == (3, 0, 0)
    assert (high["interval_low_percent"], high["interval_high_percent"]) == want.interval_pct
    assert 0 < high["interval_low_percent"] < 10 < high["interval_high_percent"]
    assert (high["p"], high["p_adjusted"]) == (want.p, want.p_adjusted)
    assert high["p_adjusted"] <= 0.05
    assert (high["confidence"], high["bound_percent"]) == (want.confidence, 1.0)
    # fewer than ten pairs, no noise pair, nothing to qualify: null, not 0 and not an empty text
    empty = ("bootstrap_low_percent", "noise_floor_percent", "note", "warning", "more_launches")
    assert {name: high[name] for name in empty} == dict.fromkeys(empty)
    assert (high["launches_planned"], high["launches_used"]) == (5, 3)
    assert (high["look"], high["looks_planned"], high["stopped"]) == (1, 3, True)
    assert high["why"] == "c2: worse at look 1"


def test_without_a_point_there_is_a_row_and_no_number():
    low, _ = comparison_rows("made-up", [planned()], [])

    assert (low["verdict"], low["verdict_text"]) == (
        "no_verdict",
        "no verdict (no launch of both arms)",
    )
    numbers = ("effect_percent", "interval_low_percent", "p", "baseline_mean", "variant_mean")
    assert {name: low[name] for name in numbers} == dict.fromkeys(numbers)
    assert (low["stopped"], low["launches_used"], low["pairs"]) == (False, 0, 0)


@pytest.mark.parametrize("on", [WORSE, UNSURE, (9.0, 18.0, 27.0), (10.0, 20.0, 30.0)])
def test_what_a_launch_decided_is_what_the_table_says(on):
    one, found = planned(), Found(off=OFF, on=on)
    decided = why_not_needed([one], launch(4), found)
    if decided:
        for number in (4, 5):
            found.put("off", number, NOT_NEEDED)
            found.put("on", number, NOT_NEEDED)

    _, high = comparison_rows("made-up", [one], found.table())

    assert high["stopped"] == (decided is not None)
    if decided:
        assert decided == f"pair: {high['why']}"
    assert high["launches_used"] == 3


def test_rounds_that_only_another_comparison_needed_change_nothing():
    """The baseline went on for another pair: its values are there, the variant's are not."""
    one, found = planned(), Found(off=(*OFF, 10, 10), on=WORSE)
    found.put("on", 4, NOT_NEEDED)
    found.put("on", 5, NOT_NEEDED)

    made = concluded(one, found)

    assert (made.used, made.why, made.results[1].pairs) == (3, "c2: worse at look 1", 3)


# --- side by side --------------------------------------------------------------------------------


def started(found, *order):
    """Give the launches their times: `off1`, `on1` and so on, in the order of measuring."""
    for minute, name in enumerate(order):
        cell, launch = name.rstrip("0123456789"), name.lstrip("ofn")
        for load in (LOW, HIGH):
            found.rows[cell, launch, load]["started_at"] = f"2026-11-30T10:{minute:02}:00+00:00"
    return found


def test_rounds_in_turn_are_side_by_side():
    pair = planned(noise_pair=True, rounds=3)
    found = started(
        Found(off=(1,) * 6, on=(1,) * 3),
        *("off1", "on1", "off2", "off4", "on2", "off3", "off5", "on3", "off6"),
    )

    assert rounds_apart(pair, found, 3) == set()


def test_an_arm_that_was_measured_again_later_has_no_partner_any_more():
    found = started(Found(off=OFF, on=WORSE), "off1", "on1", "on2", "off3", "on3", "off2")

    assert rounds_apart(planned(), found, 3) == {1}
    _, high = series_of(planned(), found, 3)
    assert high.baseline == (10.0, None, 30.0)
    assert high.variant == (11.0, None, 32.997)
    rows = list(comparison_rows("made-up", [planned()], found.table()))
    assert rows[1]["warning"].startswith("1 of 3 rounds were not measured side by side")
    assert (rows[1]["pairs"], rows[1]["left_out"], rows[1]["verdict"]) == (2, 1, "no_verdict")


def test_what_a_later_round_says_of_an_earlier_one_is_told_and_left_out_alike():
    # a launch of round 5, which another comparison needed, lies within round 3
    found = Found(off=(*OFF, 10.0, 10.0), on=(11.0, 22.002, 99.0, 11.001, 11.0))
    order = ("off1", "on1", "on2", "off2", "off3", "off5", "on3", "on4", "off4", "on5")
    started(found, *order)

    _, high = comparison_rows("made-up", [planned(least=4)], found.table())

    assert (high["verdict"], high["launches_used"]) == ("worse", 4)
    assert (high["pairs"], high["left_out"]) == (3, 1)
    assert high["warning"].startswith("1 of 4 rounds were not measured side by side, as where")
    assert high["warning"].endswith("a larger launches.max measures further rounds")


def test_arms_that_were_measured_one_after_the_other_are_no_pairs():
    found = started(Found(off=OFF, on=WORSE), "off1", "off2", "off3", "on1", "on2", "on3")

    assert rounds_apart(planned(), found, 3) == {0, 1, 2}


def later(found, name, when):
    for load in (LOW, HIGH):
        found.rows[name[:-1], name[-1], load]["started_at"] = when


def in_turn():
    return started(
        Found(off=(*OFF, 10.0), on=(*WORSE, 11.0)),
        *("off1", "on1", "on2", "off2", "off3", "on3", "on4", "off4"),
    )


def test_an_arm_of_the_last_round_that_was_measured_again_later_has_no_partner():
    found = in_turn()
    later(found, "off4", "2026-12-07T10:00:00+00:00")  # no launch of another round between them

    assert rounds_apart(planned(), found, 4) == {3}
    assert rounds_apart(planned(), found, 3) == set()
    assert series_of(planned(), found, 4)[1].baseline == (*OFF, None)


def test_a_noise_launch_that_was_repeated_later_tells_no_noise_and_costs_no_pair():
    pair = planned(noise_pair=True, rounds=3)
    found = started(
        Found(off=(1.0, 1.5, 1.0, 1.1, 1.0, 1.1), on=(2.0,) * 3),
        *("off1", "on1", "off4", "on2", "off3", "off5", "on3", "off6", "off2"),
    )

    _, high = series_of(pair, found, 3)

    assert high.aa == ((None, None), (1.0, 1.1), (1.0, 1.1))
    assert (high.baseline, high.variant) == ((1.0,) * 3, (2.0,) * 3)


def test_a_campaign_that_stood_still_within_a_round_has_no_pair_there():
    found = in_turn()
    for name in ("off2", "off3", "on3", "on4", "off4"):
        minute = found.rows[name[:-1], name[-1], LOW]["started_at"][14:16]
        later(found, name, f"2026-12-01T10:{minute}:00+00:00")

    assert rounds_apart(planned(), found, 4) == {1}


def test_a_pause_of_less_than_an_hour_and_arms_that_always_take_long_are_side_by_side():
    found = in_turn()
    later(found, "off4", "2026-11-30T11:00:00+00:00")
    assert rounds_apart(planned(), found, 4) == set()

    for day, name in enumerate(("off1", "on1", "on2", "off2", "off3", "on3", "on4", "off4"), 1):
        later(found, name, f"2026-12-{day:02}T10:00:00+00:00")
    assert rounds_apart(planned(), found, 4) == set()


def test_no_launch_is_started_for_what_cannot_be_decided_any_more():
    pair = planned()
    found = Found(off=(10.0,) * 3, on=(11.0,) * 3)
    for launch in (1, 2, 3):
        found.put("on", launch, row(None, "failed"))

    def why(number):
        launch = {"cell": "on", "launch": number, "condition": {"comparisons": ["pair"]}}
        return why_not_needed([pair], launch, found)

    assert why("4") == "pair: it cannot be decided any more: 0 pairs of values after 3 rounds"
    found.put("on", 3, row(11.0))
    assert why("4") is None  # with 4 and 5 there may be three


def test_the_points_of_a_plan_have_their_keys():
    plan = {
        "launches": [
            {"cell": "on", "launch": "1", "points": [{"load_id": LOW, "key": "k"}]},
        ]
    }

    assert planned_keys(plan) == {("on", "1", LOW): "k"}


# --- goodput of 0 --------------------------------------------------------------------------------


def goodput(*values):
    return [{**row(), "goodput_request_s": value} for value in values]


def good(off, on):
    """Three to five rounds decided by goodput: what was measured at both loads."""
    found = Found()
    for cell, values in (("off", off), ("on", on)):
        for launch, one in enumerate(goodput(*values), 1):
            found.put(cell, launch, one)
    return planned(metric="goodput_request_s"), found


def test_a_goodput_of_0_was_measured_and_one_that_is_missing_was_not():
    (zero, missing, wrong) = goodput(0.0, None, -1.0)

    assert value_of(zero, "goodput_request_s") == 0.0
    assert value_of(missing, "goodput_request_s") is None
    assert value_of(wrong, "goodput_request_s") is None
    assert value_of({**zero, "validity": "partial"}, "goodput_request_s") is None


def test_launches_without_a_good_request_are_not_left_out_of_what_is_better():
    # of five launches two met the objective never: the other three alone would say better
    asked, found = good((5.0, 5.0, 5.0, 5.0, 5.0), (0.0, 9.0, 9.01, 9.02, 0.0))

    made = concluded(asked, found)

    assert [one.text for one in made.results] == 2 * [
        (
            "no verdict (goodput_request_s is 0 in 2 launches of the variant, and no change in "
            "percent is from or to 0)"
        )
    ]
    assert {(one.effect_pct, one.variant_mean, one.left_out) for one in made.results} == {
        (None, None, 0)
    }


def test_a_goodput_of_0_in_both_arms_is_told_of_both():
    (_, primary) = concluded(*good((0.0, 5.0, 5.0), (0.0, 0.0, 5.1))).results

    assert "is 0 in 1 launch of the baseline and in 2 launches of the variant" in primary.text


def test_no_launch_is_started_after_a_goodput_of_0_at_the_load_that_decides():
    asked, found = good((5.0, 5.0, 5.0), (5.1, 0.0, 4.9))

    why = why_not_needed([asked], launch(4), found)

    assert why is not None
    assert "it cannot be decided any more: goodput_request_s is 0 in 1 launch of" in why
