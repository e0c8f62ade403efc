"""What a reader of the report sees of a comparison, and of OEA where the arms differ in it."""

import re
from html.parser import HTMLParser

import pytest

from builders import campaign, with_plugin
from compared import HIGH, LOW, Compared, pair
from sgmatrix.present.check import check
from sgmatrix.present.comparisons import effect_text, heading, interval_text, sentence
from sgmatrix.present.oea_view import CAUSES, other_differences
from sgmatrix.present.points import read_points

AXES = {"max_running_requests": [4, 8]}
OFF, ON = "max-running-requests-4", "max-running-requests-8"
SLOTS = pair({"max_running_requests": 4}, {"max_running_requests": 8})
OEA = pair({"oea": "off"}, {"oea": {"k0": 2}})
BASE = (10.0, 20.0, 15.0)
WORSE, BETTER = (20.0, 40.1, 29.95), (5.0, 10.02, 7.49)
UNSURE = (11.0, 18.0, 15.1)


class Section(HTMLParser):
    """The comparisons of a page: its text, its tables as rows, the class of each cell and note."""

    def __init__(self, html):
        super().__init__()
        self.parts, self.tables, self.classes, self.notes = [], [], [], []
        self.cell = False
        start = html.find('<section aria-labelledby="comparisons">')
        self.there = start >= 0
        if self.there:
            self.feed(html[start : html.index("</section>", start)])
        self.text = " ".join(" ".join(self.parts).split())

    def handle_starttag(self, tag, attrs):
        name = dict(attrs).get("class", "")
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.classes.append(name)
            self.cell = True
        elif tag == "div" and name.startswith("note"):
            self.notes.append(name.strip())
        elif tag in ("br", "small"):
            self.handle_data(" ")

    def handle_endtag(self, tag):
        self.cell = self.cell and tag not in ("td", "th")

    def handle_data(self, data):
        self.parts.append(data)
        if self.cell:
            self.tables[-1][-1][-1] += data

    def rows(self, index):
        head, *rows = [[" ".join(text.split()) for text in row] for row in self.tables[index]]
        return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.fixture
def slots(tmp_path):
    return Compared(tmp_path, campaign(axes=AXES, compare=[SLOTS]))


@pytest.fixture
def oea(tmp_path):
    return Compared(tmp_path, with_plugin(axes={"oea": ["off", {"k0": 2}]}, compare=[OEA]))


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
        told.measured(OFF, str(2 * number), rates={1: 64, 2: 100}, itl_s=tpot_ms / 1e3)
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


# --- OEA -----------------------------------------------------------------------------------------

LAYERS = 4


def counts(**by_batch):
    return {
        "batches": {
            name.removeprefix("b"): {
                "activated_mean": mean,
                "activated_sd": 1.0,
                "steps": 32,
                "layers": LAYERS,
                "experts": 16,
                "top_k": 4,
            }
            for name, mean in by_batch.items()
        }
    }


def quality(mean, *by_text):
    return {"logprob_mean": mean, "logprob_by_text": list(by_text or (mean, mean)), "tokens": 46}


PROOF = [{"core": "eager", "k0": 2, "check": {"ok": True}}]
# an expert of the tiny model has 3 x 128 x 64 parameters of 2 bytes: 49152 bytes; at this
# bandwidth one of them in each of 4 layers takes 1 ms per step
BANDWIDTH = 49152 * LAYERS * 1e3


def probed(told, *, off=7.0, on=4.0, bandwidth=BANDWIDTH):
    told.probe("oea-off", **counts(b1=4.0, b2=off), quality=quality(-1.5))
    told.probe(
        "oea2",
        **counts(b1=4.0, b2=on),
        quality=quality(-1.75, -1.8, -1.7),
        proof=PROOF,
        memory_bandwidth_bytes_s=bandwidth,
    )


def test_experts_bytes_and_quality_stand_beside_the_verdict(oea):
    oea.rounds(baseline=BASE, variant=BETTER)
    probed(oea)

    section = Section(oea.page())

    # 3 of 7 experts fewer, at 1 ms each; TPOT off is 14.42 ms
    assert (
        f"{CAUSES['gain']}: 7.0 to 4.0 distinct experts per step and layer at batch 2 (-43 %); "
        "reading those that it leaves out takes 3 ms per step, 21 % of TPOT."
    ) in section.text
    assert "1 rank proved that OEA runs (eager core, k0 = 2), compared with the reference" in (
        section.text
    )
    assert (
        "mean log-probability per token -1.5000 off, -1.7500 on, difference -0.2500 ± 0.0500, "
        "over 46 tokens of 2 texts forced"
    ) in section.text
    rows = {row["batch"]: row for row in section.rows(1)}
    assert list(rows["2"].values())[:5] == ["2", "7.00", "4.00", "-43 %", "3"]
    assert rows["1"]["experts change"] == "0 %"
    first = {row["load point"]: row for row in section.rows(0)}["c0002-i16-o4-random-ids decides"]
    assert rows["2"]["change"] == first["change"].split(" ")[0] + " %"
    assert rows["2"]["tpot_ms_mean off"] == first["oea-off tpot_ms_mean"]
    # 49152 x 4 x 1000 bytes/s
    assert "Memory bandwidth measured there: 0.197 GB/s" in section.text


@pytest.mark.parametrize(
    ("why", "variant", "probes"),
    [
        ("gain", BETTER, {}),
        ("better_without", BETTER, {"off": 4.1}),
        ("no_fewer_experts", WORSE, {"off": 4.1}),
        ("not_expert_bound", WORSE, {"bandwidth": BANDWIDTH * 1000}),  # 3 µs of 14 ms
        ("router_overhead", WORSE, {}),
        ("unknown", WORSE, {"bandwidth": None}),
        ("unknown", UNSURE, {}),
    ],
)
def test_each_cause_is_said_in_words(oea, why, variant, probes):
    oea.rounds(baseline=BASE, variant=variant)
    probed(oea, **probes)

    section = Section(oea.page())

    assert f"{CAUSES[why]}: {probes.get('off', 7.0)} to 4.0 distinct" in section.text
    assert not [text for name, text in CAUSES.items() if name != why and text in section.text]


def test_a_gain_without_probes_is_not_put_down_to_experts(oea):
    oea.rounds(baseline=BASE, variant=BETTER)

    text = Section(oea.page()).text

    assert f"{CAUSES['better_unexplained']}: the batch size that decides was not probed" in text
    assert "reads fewer" not in text


BOTH = {
    "axes": {"oea": ["off", {"k0": 2}], "max_running_requests": [4, 8]},
    "design": "full",
    "exclude": [
        {"oea": "off", "max_running_requests": 8},
        {"oea": {"k0": 2}, "max_running_requests": 4},
    ],
    "compare": [OEA],
}


def test_arms_that_differ_in_a_second_axis_name_it_and_no_cause(tmp_path):
    both = Compared(tmp_path, with_plugin(**BOTH))
    off, on = both.plan["cells"]
    both.rounds(baseline=BASE, variant=BETTER)
    both.probe(off, **counts(b2=7.0), quality=quality(-1.5))
    both.probe(on, **counts(b2=4.0), quality=quality(-1.5))

    text = Section(both.page()).text

    assert (
        f"{CAUSES['confounded']}: max_running_requests: 4 and 8; 7.0 to 4.0 distinct experts"
        in text
    )
    assert "faster for it" not in text


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({}, []),
        ({"axes": {"oea": {"k0": 2}}, "env": {"OEA_ENABLE": "1"}}, []),
        ({"flags": {"a": 2}}, ["a: 1 and 2"]),  # of an override
        ({"flags": {}}, ["a: 1 and not set"]),
        ({"env": {"OEA_ENABLE": "1", "X": "y"}}, ["X: not set and y"]),
        ({"engine": "other"}, ["engine: not the same"]),
        # an axis says it all
        ({"axes": {"oea": "off", "a": 2}, "flags": {"a": 2}}, ["a: not set and 2"]),
    ],
)
def test_what_two_arms_differ_in_beside_oea_is_named(changes, want):
    one = {
        "axes": {"oea": "off"},
        "flags": {"a": 1},
        "env": {"OEA_ENABLE": "0"},
        "engine": "standin",
        "patches": {},
    }

    assert other_differences(one, {**one, **changes}) == want


def test_bandwidths_that_differ_are_both_named_and_the_larger_one_counts(oea):
    oea.rounds(baseline=BASE, variant=WORSE)
    probed(oea)
    oea.probe("oea-off", **counts(b2=7.0), memory_bandwidth_bytes_s=2 * BANDWIDTH)

    section = Section(oea.page())

    assert (
        "Memory bandwidth measured there: 0.393 GB/s, the larger of 0.393 with OEA off and 0.197 "
        "with OEA on: something else used the device"
    ) in section.text
    assert "leaves out takes 1.5 ms per step" in section.text  # half of 3


def test_a_model_that_knows_nothing_has_no_quality_that_could_differ(oea):
    oea.rounds(baseline=BASE, variant=WORSE)
    same = quality(-10.3972)
    oea.probe("oea-off", **counts(b2=7.0), quality=same)
    oea.probe("oea2", **counts(b2=4.0), quality=same)

    text = Section(oea.page()).text

    assert (
        "Quality: every token was as likely in both arms, as of a model that knows nothing "
        "(-10.3972 per token, over 46 tokens of 2 texts): it tells nothing of OEA."
    ) in text
    assert "difference +0.0000" not in text


def test_without_probes_nothing_is_counted_and_the_page_says_so(oea):
    oea.rounds(baseline=BASE, variant=WORSE)

    section = Section(oea.page())

    assert (
        "Why it is, or is not, faster is not known: the batch size that decides was not probed in "
        "both arms."
    ) in section.text
    assert "OEA off was not probed; OEA on was not probed" in section.text
    assert "Quality not measured: OEA off: there is no probe." in section.text
    assert len(section.tables) == 1  # no table of experts


def test_a_probe_that_failed_is_named_with_its_reason_and_the_rest_stays_blank(oea):
    oea.rounds(baseline=BASE, variant=WORSE)
    probed(oea)
    failed = {"status": "failed", "reason": "server_crash", "detail": "RuntimeError: x"}
    oea.probe("oea2", **failed)

    section = Section(oea.page())

    assert "The probe with OEA on failed: server_crash: RuntimeError: x" in section.text
    assert "Quality not measured: OEA on: there is no probe." in section.text
    rows = {row["batch"]: row for row in section.rows(1)}
    assert list(rows["2"].values())[:5] == ["2", "7.00", "", "", ""]


def test_quality_that_was_not_measured_says_why_in_place_of_a_number(oea):
    oea.rounds(baseline=BASE, variant=WORSE)
    probed(oea)
    why = "OEA did not run meanwhile: calls [3] to [3]"
    oea.probe("oea2", **counts(b2=4.0), quality={"not_measured": why})

    section = Section(oea.page())

    assert f"Quality not measured: OEA on: {why}." in section.text
    assert "mean log-probability" not in section.text


def test_a_core_that_was_not_compared_is_not_called_compared(oea):
    oea.rounds(baseline=BASE, variant=WORSE)
    probed(oea)
    proof = [{"core": "eager", "k0": 2, "check": {"ok": None}}] * 2
    oea.probe("oea2", **counts(b2=4.0), quality=quality(-1.0), proof=proof)

    assert "2 ranks proved that OEA runs (eager core, k0 = 2), not compared." in (
        Section(oea.page()).text
    )


def test_a_probe_that_read_too_many_experts_leaves_no_verdict_about_its_cell(oea):
    oea.rounds(baseline=BASE, variant=BETTER)
    probed(oea, on=7.0)  # two tokens that open the same two and are filled to four read six

    section = Section(oea.page())

    assert section.notes == ["note"]
    assert (
        "oea2 against oea-off: no verdict (3 of 3 rounds have no value of both arms that may be "
        "compared)"
    ) in section.text
    assert (
        "The points with OEA on are left out: the probe read 7.0 distinct experts at batch 2, "
        "k0 = 2, fill = distinct allows 2 to 6.0"
    ) in section.text
    assert "0 pairs of launches, 3 left out" in section.text
    assert {row["validity"] for row in read_points(oea.points)[1] if row["cell"] == "oea2"} == {
        "implausible",
        None,  # not run
    }


def test_arms_that_do_not_differ_in_oea_say_nothing_of_experts(slots):
    slots.rounds(baseline=BASE, variant=WORSE)

    section = Section(slots.page())

    assert "experts" not in section.text and "Quality" not in section.text


def test_what_a_server_wrote_is_shown_as_text(oea):
    oea.rounds(baseline=BASE, variant=WORSE)
    oea.probe("oea-off", status="failed", reason="server_crash", detail="<script>alert(1)</script>")

    page = oea.page()

    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
