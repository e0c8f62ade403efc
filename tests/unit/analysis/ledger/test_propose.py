"""Entries that follow from comparisons: status, conditions, evidence, effect, day."""

import pyarrow.parquet as pq
import pytest

from builders import campaign
from compared import HIGH, LOW, Compared, pair
from comparison_page import BASE, BETTER, UNSURE, WORSE
from sgmatrix.analysis.ledger.propose import proposals
from sgmatrix.plan.ledger import Entry

AXES = {"max_running_requests": [4, 8], "decode_steps": [1]}
OFF, ON = "ds1-max-running-requests-4", "ds1-max-running-requests-8"
SLOTS = pair({"max_running_requests": 4}, {"max_running_requests": 8})
NODE = {"gpus": [], "processor": "Xeon 8481C", "hostname": "n1"}


@pytest.fixture
def slots(tmp_path):
    return Compared(tmp_path, campaign(axes=AXES, compare=[SLOTS]))


def made(told, plan=None, nodes=None, **changes):
    rows = [{**row, **changes} for row in told.table]
    points = pq.read_table(told.points).to_pylist()
    nodes = {ON: NODE} if nodes is None else nodes
    return proposals(plan or told.plan, rows, points, nodes)


@pytest.mark.parametrize(("variant", "status"), [(WORSE, "ruled_out"), (BETTER, "helped")])
def test_a_verdict_gives_an_entry_that_says_all_it_rests_on(slots, variant, status):
    slots.rounds(baseline=BASE, variant=variant)

    (entry,) = made(slots).entries

    row = next(row for row in slots.table if row["primary"])
    assert entry["id"] == "made-up-pair"
    assert entry["status"] == status
    assert entry["claim"] == (
        "max_running_requests 8 instead of max_running_requests 4 gives a better tpot_ms_mean."
    )
    assert entry["conditions"] == {
        "model": "tiny-qwen3-moe",
        "hardware": "Xeon 8481C",
        "engine_version": "0.5.23+standin",
        "load": "random-ids prompts, 16 tokens in, 4 out, concurrency 2",
    }
    assert entry["applies_to"] == {"max_running_requests": 8}
    assert entry["evidence"] == [
        {"campaign": "made-up", "cell": cell, "key": slots.plan["cells"][cell]["key"]}
        for cell in (OFF, ON)
    ]
    assert entry["effect"]["metric"] == "tpot_ms_mean"
    assert entry["effect"]["percent"] == pytest.approx(row["effect_percent"], abs=1e-4)
    assert entry["effect"]["low_percent"] == pytest.approx(row["interval_low_percent"], abs=1e-4)
    assert entry["effect"]["high_percent"] == pytest.approx(row["interval_high_percent"], abs=1e-4)
    assert entry["effect"]["text"] == f"{row['verdict_text']}, over 3 pairs of launches"
    assert entry["date"] == "2026-11-20"
    assert Entry.model_validate(entry).status == status


def test_no_difference_is_a_finding_too(slots):
    slots.rounds(baseline=BASE, variant=UNSURE)

    (entry,) = made(slots, verdict="no_difference", verdict_text="no difference").entries

    assert entry["status"] == "neutral"


@pytest.mark.parametrize("verdict", ["undecided", "no_verdict"])
def test_what_is_not_decided_gives_none(slots, verdict):
    slots.rounds(baseline=BASE, variant=WORSE)

    found = made(slots, verdict=verdict)

    assert (found.entries, found.unfit) == ([], [])


def test_a_campaign_that_did_not_run_gives_none(slots):
    assert made(slots).entries == []


def test_the_load_point_that_decides_is_the_only_one(slots):
    slots.rounds(baseline=BASE, variant=WORSE)
    assert {row["load_id"]: row["verdict"] for row in slots.table} == {LOW: "worse", HIGH: "worse"}

    assert len(made(slots).entries) == 1


def test_the_day_is_that_of_the_last_launch_that_the_verdict_rests_on(slots):
    slots.rounds(baseline=BASE, variant=WORSE)
    for launch, day in (("2", "2026-11-21"), ("4", "2026-11-29")):
        if launch == "4":  # of a round behind the three that decided
            slots.measured(ON, launch, rates={1: 64, 2: 100})
        folder = slots.layout.attempt(ON, launch, 1)
        slots.change_point(folder, 2, started_at=f"{day}T23:59:00.000000+00:00")

    points = slots.table and pq.read_table(slots.points).to_pylist()
    rows = [{**row, "launches_used": 3, "verdict": "worse"} for row in slots.table]
    (entry,) = proposals(slots.plan, rows, points, {}).entries

    assert entry["date"] == "2026-11-21"


def test_what_is_not_known_of_the_node_is_left_out(slots):
    slots.rounds(baseline=BASE, variant=WORSE)

    (entry,) = made(slots, nodes={}).entries

    assert "hardware" not in entry["conditions"] and "gpus" not in entry["conditions"]


def test_gpus_are_named_once_and_counted_by_the_cell(slots):
    slots.rounds(baseline=BASE, variant=WORSE)
    plan = {**slots.plan, "cells": {k: {**c, "gpus": 2} for k, c in slots.plan["cells"].items()}}

    (entry,) = made(slots, plan, {ON: {"gpus": [{"name": "H200"}] * 8}}).entries

    assert (entry["conditions"]["hardware"], entry["conditions"]["gpus"]) == ("H200", 2)


def test_a_warning_of_the_comparison_becomes_the_note(slots):
    slots.rounds(baseline=BASE, variant=WORSE)

    (entry,) = made(slots, note="below the floor", warning="apart").entries
    (plain,) = made(slots, note=None, warning=None).entries

    assert entry["note"] == "below the floor; apart"
    assert "note" not in plain


def test_another_server_than_the_plan_asks_for_now_gives_no_entry(slots):
    slots.rounds(baseline=BASE, variant=WORSE)
    cells = {**slots.plan["cells"], ON: {**slots.plan["cells"][ON], "key": "f" * 64}}

    found = made(slots, {**slots.plan, "cells": cells})

    assert found.entries == []
    assert found.unfit == ["pair: measured with another server than the campaign asks for now"]


@pytest.mark.parametrize("changes", [{"name": "other"}, {"variant": OFF}])
def test_a_comparison_that_is_not_asked_for_any_more_gives_none(slots, changes):
    slots.rounds(baseline=BASE, variant=WORSE)
    planned = [{**slots.plan["comparisons"][0], **changes}]

    found = made(slots, {**slots.plan, "comparisons": planned})

    assert found.entries == []
    assert found.unfit == ["pair: the campaign does not ask for it any more"]


def test_an_axis_that_is_left_out_says_so_and_is_asked_for_as_such(tmp_path):
    axes = {"max_running_requests": [4, None]}
    where = pair({"max_running_requests": 4}, {"max_running_requests": None})
    told = Compared(tmp_path, campaign(axes=axes, compare=[where]))
    told.rounds(baseline=BASE, variant=WORSE)

    (entry,) = made(told, nodes={}).entries

    assert entry["claim"].startswith("max_running_requests left out instead of ")
    assert entry["applies_to"] == {"max_running_requests": None}
