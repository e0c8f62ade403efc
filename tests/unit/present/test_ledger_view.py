"""The ledger in the plan, in the report, and as YAML to be pasted."""

import re

import pytest

from builders import PROJECT, campaign
from compared import Compared, pair
from comparison_page import BASE, WORSE
from finished import Finished
from ledger_entries import entry, entry_data
from sgmatrix.analysis.ledger.concern import findings
from sgmatrix.core.files import read_json, write_json
from sgmatrix.core.yaml_strict import yaml_text
from sgmatrix.plan.ledger import Effect, read_ledger
from sgmatrix.plan.plan import make_plan
from sgmatrix.present.ledger_proposals import proposed
from sgmatrix.present.ledger_view import effect_text, warning_lines
from sgmatrix.present.plan_view import plan_text
from sgmatrix.present.report import render

TWO = {"parallelism": ["tp1", "tp2"]}
XEON = {"gpus": [], "processor": "Xeon 8481C"}


@pytest.fixture
def history(tmp_path):
    return Finished(tmp_path, campaign(axes=TWO))


def found(history, *entries, node=XEON):
    plan = make_plan(history.campaign, history.layout, PROJECT)
    return findings(entries, plan, lambda: node)


# --- which ones concern a campaign ---------------------------------------------------------------


def test_those_of_its_cells_and_those_of_its_model_concern_it(history):
    other = {"model": "GLM-5-NVFP4"}
    entries = [
        entry(),
        entry(id="model-alone", applies_to=[]),
        entry(id="cells-alone", conditions=other),
        entry(id="neither", conditions=other, applies_to={"parallelism": "tp8"}),
    ]

    assert [(one.entry.id, one.cells) for one in found(history, *entries)] == [
        ("tp2-slower", ("tp2",)),
        ("model-alone", ()),
        ("cells-alone", ("tp2",)),
    ]


def test_one_about_the_model_alone_is_held_to_the_engines_of_all_cells(history):
    old = {"model": "tiny-qwen3-moe", "hardware": "Xeon", "engine_version": "0.5.22"}

    (one,) = found(history, entry(applies_to=[], conditions=old))

    assert one.retest == ("engine 0.5.23+standin, not sglang 0.5.22",)


def test_the_node_is_not_asked_where_nothing_is_found(history):
    plan = make_plan(history.campaign, history.layout, PROJECT)

    def node():
        pytest.fail("it was asked")

    alien = entry(conditions={"model": "GLM-5"}, applies_to={"parallelism": "tp8"})
    assert findings([alien], plan, node) == ()


def test_load_points_count_by_their_concurrency(history):
    high = entry(conditions={}, applies_to={"concurrency": {"at_least": 2}, "parallelism": "tp1"})
    higher = entry(conditions={}, applies_to={"concurrency": {"at_least": 3}})

    (one,) = found(history, high, higher)

    assert one.cells == ("tp1",)


# --- the plan ------------------------------------------------------------------------------------


def test_the_plan_has_one_line_for_a_claim_that_cells_repeat(history):
    plan = make_plan(history.campaign, history.layout, PROJECT)

    lines = plan_text(plan, history.layout, [], findings=found(history, entry())).splitlines()

    (line,) = [line for line in lines if line.startswith("ledger:")]
    assert line == (
        "ledger: tp2-slower, ruled out: cell tp2; half as fast (tiny-qwen3-moe; Xeon; "
        "sglang 0.5.23+standin; random prompts, concurrency 2)"
    )
    assert not any("ledger:" in line for line in plan_text(plan, history.layout, []).splitlines())


def test_a_finding_of_another_place_is_to_be_retested(history):
    conditions = {"model": "GLM-5", "engine_version": "0.5.22"}

    (line,) = warning_lines(found(history, entry(conditions=conditions)))

    assert line.endswith(
        "; to be retested: model tiny-qwen3-moe, not GLM-5, the entry names no hardware, "
        "engine 0.5.23+standin, not sglang 0.5.22"
    )
    (silent,) = warning_lines(found(history, entry(conditions={"model": "tiny-qwen3-moe"})))
    assert "(tiny-qwen3-moe; no engine version told)" in silent


@pytest.mark.parametrize("status", ["helped", "neutral", "workaround", "open"])
def test_only_what_is_ruled_out_is_warned_of(history, status):
    assert warning_lines(found(history, entry(status=status))) == []
    assert warning_lines(found(history, entry(applies_to=[]))) == []


def test_many_cells_are_counted(tmp_path):
    many = Finished(tmp_path, campaign(axes={"chunked_prefill_size": [1, 2, 3, 4, 5, 6]}))

    (line,) = warning_lines(found(many, entry(applies_to={"chunked_prefill_size": "any"})))

    names = ", ".join(f"chunked-prefill-size-{n}" for n in (1, 2, 3, 4))
    assert f"ruled out: cells {names} and 2 more; half" in line


@pytest.mark.parametrize(
    ("numbers", "want"),
    [
        ({}, "slower"),
        ({"metric": "m", "percent": -5.0}, "slower (m -5 %)"),
        (
            {"metric": "m", "percent": 1.25, "low_percent": 0.5, "high_percent": 2.0},
            "slower (m +1.25 %, +0.5 to +2 %)",
        ),
    ],
)
def test_an_effect_has_its_number_and_interval_where_they_are_known(numbers, want):
    assert effect_text(Effect(text="slower", **numbers)) == want


# --- the report ----------------------------------------------------------------------------------


def section(html):
    start = html.find('<section aria-labelledby="ledger">')
    if start < 0:
        return None
    rows = html[start : html.index("</section>", start)].split("<tbody>")[1].split("</tr>")[:-1]
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
    return [[" ".join(re.sub("<[^>]+>", " ", cell).split()) for cell in row] for row in cells]


def page(history, *entries):
    for cell in ("tp1", "tp2"):
        history.measured(cell, rates={1: 64, 2: 100})
    records = [one.record() for one in found(history, *entries)]
    plan = read_json(history.layout.plan)
    write_json(history.layout.plan, {**plan, "ledger": records})
    return render(history.layout, history.collect())[0]


def test_the_report_tells_all_of_a_finding_those_of_cells_first(history):
    about_model = entry(
        id="power", status="open", applies_to=[], conditions={"model": "tiny-qwen3-moe"}
    )
    key = "a1" * 32
    measured = entry(
        note="Not checked <yet>.",
        evidence=[
            {"reference": "notes.txt", "section": "Section 2"},
            {"campaign": "night", "cell": "tp2", "key": key},
        ],
    )

    assert section(page(history, about_model, measured)) == [
        [
            "tp2-slower",
            "ruled out",
            "TP2 is faster than TP1. Half as fast. Not checked &lt;yet&gt;.",
            "tp2",
            "tiny-qwen3-moe; Xeon; sglang 0.5.23+standin; random prompts, concurrency 2",
            "no",
            "notes.txt, Section 2; night, cell tp2, key a1a1a1a1a1a1",
            "2026-11-20",
        ],
        [
            "power",
            "open",
            "TP2 is faster than TP1. Half as fast.",
            "none, it is about the model",
            "tiny-qwen3-moe; no engine version told",
            "the entry names no hardware the entry names no engine version",
            "notes.txt, Section 2",
            "2026-11-20",
        ],
    ]


def test_values_that_are_left_out_stay_so_in_the_plan(history):
    null = entry(applies_to={"NCCL_ALGO": None})

    (one,) = found(history, null)

    assert one.record()["applies_to"] == [{"NCCL_ALGO": None}]


def test_a_campaign_without_findings_has_no_such_section(history):
    assert section(page(history)) is None


# --- proposals -----------------------------------------------------------------------------------


@pytest.fixture
def slots(tmp_path):
    axes = {"max_running_requests": [4, 8]}
    where = pair({"max_running_requests": 4}, {"max_running_requests": 8})
    return Compared(tmp_path, campaign(axes=axes, compare=[where]))


def test_what_is_proposed_can_be_pasted_below_the_entries_of_a_ledger(slots, tmp_path):
    slots.rounds(baseline=BASE, variant=WORSE)
    assert slots.table
    for launch in "123":
        folder = slots.layout.attempt("max-running-requests-8", launch, 1)
        write_json(folder / "node.json", XEON)
    before = sorted(tmp_path.rglob("*"))

    text = proposed(slots.layout, "made-up", [])

    assert sorted(tmp_path.rglob("*")) == before
    assert "A person accepts an entry" in text.splitlines()[0]
    file = tmp_path / "ledger.yaml"
    file.write_text(yaml_text({"entries": [entry_data()]}).replace("\n", "\n  ").rstrip() + "\n")
    assert read_ledger(file)  # indented, as the file of this project is
    file.write_text(f"{file.read_text()}{text}\n")
    old, new = read_ledger(file)
    assert (old.id, new.id, new.status) == ("tp2-slower", "made-up-pair", "ruled_out")
    assert new.conditions.hardware == "Xeon 8481C"


def test_one_that_is_in_the_ledger_is_named(slots):
    slots.rounds(baseline=BASE, variant=WORSE)
    assert slots.table

    text = proposed(slots.layout, "made-up", [entry(id="made-up-pair", status="neutral")])

    line = "  # made-up-pair is in the ledger, neutral, of 2026-11-20: replace it"
    assert line in text.splitlines()
    assert line not in proposed(slots.layout, "made-up", [entry()]).splitlines()


NOTHING = "# nothing is decided: no comparison of made-up gives an entry"


def test_nothing_decided_is_one_line(slots):
    assert proposed(slots.layout, "made-up", []) == NOTHING
    assert slots.table
    assert proposed(slots.layout, "made-up", []) == NOTHING  # a table, and no launch yet


def test_a_verdict_of_another_server_is_told_and_not_proposed(slots):
    slots.rounds(baseline=BASE, variant=WORSE)
    assert slots.table
    plan = read_json(slots.layout.plan)
    plan["cells"]["max-running-requests-8"]["key"] = "f" * 64
    write_json(slots.layout.plan, plan)

    lines = proposed(slots.layout, "made-up", []).splitlines()

    assert lines == [
        "# pair: measured with another server than the campaign asks for now; run snakemake first",
        NOTHING,
    ]
