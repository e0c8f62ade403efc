"""What a reader of the report sees of OEA where the arms of a comparison differ in it."""

import pytest

from builders import with_plugin
from compared import Compared, pair
from comparison_page import BASE, BETTER, UNSURE, WORSE, Section
from sgmatrix.present.oea_view import CAUSES, other_differences
from sgmatrix.present.points import read_points

OEA = pair({"oea": "off"}, {"oea": {"k0": 2}})


@pytest.fixture
def oea(tmp_path):
    return Compared(tmp_path, with_plugin(axes={"oea": ["off", {"k0": 2}]}, compare=[OEA]))


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


def test_a_batch_of_which_a_probe_saw_no_whole_step_is_named(oea):
    oea.rounds(baseline=BASE, variant=WORSE)
    probed(oea)
    complete = Section(oea.page()).text
    oea.probe("oea2", **counts(b1=4.0), quality=quality(-1.5), proof=PROOF)

    said = "The probe with OEA on saw no step of 2 tokens: the server never decoded so many"
    assert said in Section(oea.page()).text
    assert "saw no step" not in complete


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


def test_what_a_server_wrote_is_shown_as_text(oea):
    oea.rounds(baseline=BASE, variant=WORSE)
    oea.probe("oea-off", status="failed", reason="server_crash", detail="<script>alert(1)</script>")

    page = oea.page()

    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
