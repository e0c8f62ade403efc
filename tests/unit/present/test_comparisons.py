"""What a reader of the report sees of a comparison."""

import re
from types import SimpleNamespace

import pytest

from builders import campaign
from compared import HIGH, LOW, Compared, pair
from comparison_page import BASE, BETTER, UNSURE, WORSE, Section
from sgmatrix.present.check import check
from sgmatrix.present.comparisons import (
    comparison_between,
    effect_text,
    heading,
    interval_text,
    sentence,
)

AXES = {"max_running_requests": [4, 8]}
OFF, ON = "max-running-requests-4", "max-running-requests-8"
SLOTS = pair({"max_running_requests": 4}, {"max_running_requests": 8})


@pytest.fixture
def slots(tmp_path):
    return Compared(tmp_path, campaign(axes=AXES, compare=[SLOTS]))


# --- the verdict ---------------------------------------------------------------------------------


def test_a_regression_is_named_marked_and_has_its_interval(slots):
    slots.rounds(baseline=BASE, variant=WORSE)

    section = Section(slots.page())

    assert f"pair: {ON} is worse than {OFF}" in section.text
    assert section.notes == ["note bad"]
    row = slots.table[1]
    low, high = row["interval_low_percent"], row["interval_high_percent"]
    # m = log 2.000548, s = 0.00210, n = 3, look 1: t for two degrees of freedom
    assert low < 100.05 < high
    assert f"tpot_ms_mean at {HIGH}: +100.1 % , interval {low:+.1f} to {high:+.1f} % at" in (
        section.text
    )
    assert f"3 of 5 planned launches per arm were used: {HIGH}: worse at look 1." in section.text
    shown = {one["load point"]: one for one in section.rows(0)}
    assert shown[f"{HIGH} decides"]["verdict"].startswith("worse")
    assert shown[f"{HIGH} decides"]["change"] == "+100.1 %"
    assert shown[f"{HIGH} decides"]["interval"] == f"{low:+.1f} to {high:+.1f} %"
    assert shown[LOW]["pairs"] == "3"
    # 10 x 20 x 15 = 3000, whose cube root is 14.42
    assert shown[LOW][f"{OFF} tpot_ms_mean"] == "14.4"
    assert "text doubt" in section.classes


def test_a_gain_is_named_and_marked_as_one(slots):
    slots.rounds(baseline=BASE, variant=BETTER)

    section = Section(slots.page())

    assert f"pair: {ON} is better than {OFF}" in section.text
    assert section.notes == ["note fine"]
    assert "text better" in section.classes and "text doubt" not in section.classes


def test_what_is_not_decided_claims_nothing(slots):
    slots.rounds(baseline=BASE, variant=UNSURE)

    section = Section(slots.page())

    assert re.search(
        rf"pair: {ON} against {OFF}: undecided \(.* launch(es)? per arm needed\)", section.text
    )
    assert section.notes == ["note"]
    assert not {"text better", "text doubt"} & set(section.classes)
    assert "is not decided after 3 of 5 launches per arm." in section.text


def test_before_the_first_launch_every_number_is_blank(slots):
    section = Section(slots.page())

    assert f"{ON} against {OFF}: no verdict (no launch of both arms)" in section.text
    assert ", interval" not in section.text
    for row in section.rows(0):
        blank = [
            text for name, text in row.items() if name not in ("load point", "verdict", "pairs")
        ]
        assert blank == [""] * 5
        assert row["pairs"] == "0"
    assert "None" not in section.text and "nan" not in section.text


def test_rounds_that_are_left_out_and_the_noise_are_said(tmp_path):
    told = Compared(tmp_path, campaign(axes=AXES, compare=[{**SLOTS, "noise_pair": True}]))
    told.rounds(baseline=BASE, variant=(20.0, 40.1, 29.95))
    for number, tpot_ms in enumerate((10.1, 20.2, 15.15), 1):
        told.measured(OFF, f"{number}-noise", rates={1: 64, 2: 100}, itl_s=tpot_ms / 1e3)
    told.change_point(told.layout.attempt(ON, "3", 1), 2, validity="cold")

    section = Section(told.page())

    assert "2 pairs of launches, 1 left out" in section.text
    # each second launch is 1 % slower; their root mean square is 1 %
    assert "Two launches of the baseline differ by 1.0 % (3 pairs)." in section.text


def test_a_campaign_without_a_comparison_has_no_such_section(tmp_path):
    told = Compared(tmp_path, campaign())
    told.measured("tp1", rates={1: 64, 2: 100})
    assert told.table == []

    from sgmatrix.present.report import render

    assert not Section(render(told.layout, told.points)[0]).there


# --- launches that were not needed ---------------------------------------------------------------


def test_launches_that_were_not_needed_make_no_cell_failed_or_not_run(slots):
    slots.rounds(baseline=BASE, variant=WORSE)
    slots.skip_rest()

    page = slots.page()

    # 3 launches of 2 cells at 2 loads
    assert check(slots.layout, slots.points) == "made-up: all 2 cells are ok, 12 points"
    assert "cells ok 2 of 2" in " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "Failed:" not in page and "Not run" not in page


def test_a_launch_that_ran_and_failed_still_fails_its_cell(slots):
    slots.rounds(baseline=BASE, variant=WORSE[:2])
    slots.died(ON, "3", root="RuntimeError: gone", rates={1: 64})
    slots.skip_rest()

    with pytest.raises(Exception, match=f"{ON}, launch 3: server_crash: RuntimeError: gone"):
        check(slots.layout, slots.collect())


def test_one_that_was_needed_and_did_not_run_is_not_excused(slots):
    slots.rounds(baseline=BASE, variant=WORSE[:2])

    with pytest.raises(Exception, match=f"{ON}: not run: 4 of 10 points were measured"):
        check(slots.layout, slots.collect())


# --- the wording ---


def told(effect, low, high, verdict="undecided", **more):
    row = {
        "baseline": "A",
        "variant": "B",
        "effect_percent": effect,
        "interval_low_percent": low,
        "interval_high_percent": high,
        "verdict": verdict,
        "verdict_text": verdict,
        **more,
    }
    return effect_text(row), interval_text(row)


@pytest.mark.parametrize(
    ("row", "want"),
    [
        ((None, None, None), ("", "")),
        ((2.04, None, None), ("+2.0 %", "")),
        ((2.04, -1.0, 5.0), ("+2.0 %", "-1.0 to +5.0 %")),
        ((0.0, -0.04, 0.04), ("0.00 %", "-0.04 to +0.04 %")),
        # half width 0.035: two decimals
        ((-0.04, -0.075, -0.005, "undecided"), ("-0.04 %", "-0.07 to -0.01 %")),
        # half width 0.45 asks for one, but an end of 0.04 is why it is better
        ((-0.49, -0.94, -0.04, "better"), ("-0.49 %", "-0.94 to -0.04 %")),
        ((-0.49, -0.94, -0.04, "undecided"), ("-0.5 %", "-0.9 to 0.0 %")),
        # every pair alike: no width
        ((-0.25, -0.25, -0.25, "better"), ("-0.2 %", "-0.2 to -0.2 %")),
        ((0.0, 0.0, 0.0), ("0.0 %", "0.0 to 0.0 %")),
        ((1e-9, 1e-9, 1e-9, "worse"), ("0.000000 %", "0.000000 to 0.000000 %")),
    ],
)
def test_a_change_has_as_many_decimals_as_its_interval_needs(row, want):
    assert told(*row) == want


@pytest.mark.parametrize(
    ("verdict", "text", "want"),
    [
        ("better", "better", "B is better than A"),
        ("worse", "worse", "B is worse than A"),
        (
            "no_difference",
            "no difference larger than 1 %",
            "B shows no difference larger than 1 % from A",
        ),
        ("undecided", "undecided (x)", "B against A: undecided (x)"),
        ("no_verdict", "no verdict (y)", "B against A: no verdict (y)"),
    ],
)
def test_the_heading_is_a_sentence_whatever_the_verdict(verdict, text, want):
    row = {"baseline": "A", "variant": "B", "verdict": verdict, "verdict_text": text}

    assert heading(row) == want


def test_a_text_becomes_a_sentence_and_one_that_is_stays_as_it_is():
    assert sentence("every pair, TPOT") == "Every pair, TPOT."
    assert sentence("Why?") == "Why?"
    assert sentence("") == "."


@pytest.mark.parametrize(
    ("one", "other", "want"),
    [("a", "b", "first"), ("b", "a", "first"), ("a", "c", "second"), ("b", "c", None)],
)
def test_a_comparison_of_two_cells_is_found_whichever_is_its_baseline(one, other, want):
    views = [
        SimpleNamespace(name="first", baseline="a", variant="b"),
        SimpleNamespace(name="second", baseline="c", variant="a"),
    ]

    assert getattr(comparison_between(views, one, other), "name", None) == want
    assert comparison_between(views, one, one) is None


# --- beside the headline ---


def headline_text(page):
    plain = re.sub(r"<[^>]+>", " ", page[page.index('aria-label="Headline"') :])
    return " ".join(plain[: plain.index("Comparisons")].split())


def test_the_headline_of_two_compared_cells_tells_their_verdict(slots):
    for number, (before, after) in enumerate(zip(BASE, UNSURE, strict=True)):
        planned = slots.plan["comparisons"][0]["rounds"][number]
        slots.measured(OFF, planned["baseline"], rates={1: 64, 2: 100}, itl_s=before / 1e3)
        slots.measured(ON, planned["variant"], rates={1: 64, 2: 125}, itl_s=after / 1e3)
    slots.skip_rest()

    text = headline_text(slots.page())

    verdict = slots.table[1]["verdict_text"]
    assert verdict.startswith("undecided")
    assert (
        f"against the base +25.0 % tpot_ms_mean, by pairs of launches: {verdict} ( pair ); {OFF}:"
    ) in text
    assert "less than launches of one cell differ" not in text
    assert "of cells that are compared by pairs of launches, their own verdict holds" in text


def test_a_headline_of_cells_that_are_not_compared_names_no_comparison(slots):
    slots.rounds(baseline=BASE, variant=UNSURE)  # as much throughput: the base is the best cell

    assert "by pairs of launches:" not in headline_text(slots.page())


def test_arms_that_do_not_differ_in_oea_say_nothing_of_experts(slots):
    slots.rounds(baseline=BASE, variant=WORSE)

    section = Section(slots.page())

    assert "experts" not in section.text and "Quality" not in section.text
