"""The table `comparisons` from a history, and that the launches of it decided by the same."""

import importlib.util
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from builders import campaign
from compared import HIGH, LOW, Compared, pair
from sgmatrix.analysis.comparisons_table import write_comparisons
from sgmatrix.core.schemas_compare import COMPARISONS

SCRIPT = Path(__file__).parents[3] / "workflow" / "scripts" / "launch.py"
AXES = {"max_running_requests": [4, 8]}
OFF, ON = "max-running-requests-4", "max-running-requests-8"
PAIR = pair({"max_running_requests": 4}, {"max_running_requests": 8})
BASE, TWICE = (10.0, 20.0, 15.0), (20.0, 40.1, 29.95)
UNSURE = (11.0, 18.0, 15.1)


@pytest.fixture
def told(tmp_path):
    return Compared(tmp_path, campaign(axes=AXES, compare=[PAIR]))


@pytest.fixture
def not_needed(monkeypatch):
    """What the rule `launch` asks before it starts a server."""
    monkeypatch.setitem(__builtins__, "snakemake", None)
    spec = importlib.util.spec_from_file_location("launch_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.not_needed


def publish(told):
    """Give Snakemake's view of the launches that are there."""
    for folder in told.layout.root.glob("history/*/launch-*/1/points"):
        cell, launch = folder.parts[-4], folder.parts[-3].removeprefix("launch-")
        shutil.copytree(folder, told.layout.launch(cell, launch) / "points", dirs_exist_ok=True)


def test_one_row_for_each_load_of_each_comparison_in_the_order_of_the_plan(told):
    told.rounds(baseline=BASE, variant=TWICE)

    rows = told.table

    assert [(row["comparison"], row["load_id"], row["primary"]) for row in rows] == [
        ("pair", LOW, False),
        ("pair", HIGH, True),
    ]
    assert [row["verdict"] for row in rows] == ["worse", "worse"]
    # log ratios of 2, 2.005 and 1.99667: their mean is that of 2.000548
    assert rows[1]["effect_percent"] == pytest.approx(100.055, abs=0.01)
    assert (rows[1]["launches_used"], rows[1]["why"]) == (3, f"{HIGH}: worse at look 1")


def test_the_file_has_the_schema_and_names_the_campaign(told, tmp_path):
    out = tmp_path / "out.parquet"
    write_comparisons(told.layout, told.collect(), out)

    table = pq.read_table(out)
    assert table.schema.remove_metadata() == COMPARISONS.remove_metadata()
    assert b"made-up" in b"".join(table.schema.metadata.values())
    assert {row["verdict"] for row in table.to_pylist()} == {"no_verdict"}


def test_the_same_points_give_the_same_bytes(told, tmp_path):
    told.rounds(baseline=BASE, variant=TWICE)
    points = told.collect()
    for name in ("a", "b"):
        write_comparisons(told.layout, points, tmp_path / name)

    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_campaign_without_a_comparison_has_a_table_without_rows(tmp_path):
    told = Compared(tmp_path, campaign())
    told.measured("tp1", rates={1: 64, 2: 100})

    assert told.table == []


@pytest.mark.parametrize("variant", [TWICE, UNSURE])
def test_the_launch_job_and_the_table_agree(told, not_needed, variant):
    told.rounds(baseline=BASE, variant=variant)
    publish(told)

    why = not_needed(told.layout, ON, "4")
    row = told.table[1]

    assert (why is not None) == row["stopped"] == (variant is TWICE)
    assert why in (None, f"pair: {row['why']}")
    assert not_needed(told.layout, OFF, "4") == why  # the arms of a round go together


def test_a_launch_that_always_runs_is_always_needed(told, not_needed):
    told.rounds(baseline=BASE, variant=TWICE)
    publish(told)

    assert not_needed(told.layout, ON, "3") is None


def test_launches_that_were_not_needed_change_nothing_of_the_answer(told, not_needed):
    told.rounds(baseline=BASE, variant=TWICE)
    before = told.table
    told.skip_rest()
    publish(told)

    assert told.table == before
    assert not_needed(told.layout, ON, "5") == f"pair: {HIGH}: worse at look 1"


def test_a_queue_counts_where_the_room_of_the_server_is_the_axis_and_for_both_alike(
    told, not_needed
):
    told.rounds(baseline=BASE, variant=TWICE)
    for folder in told.layout.root.glob("history/*/launch-*/1"):
        told.change_point(folder, 2, validity="queue_limited")
    publish(told)

    assert not_needed(told.layout, ON, "4") == f"pair: {HIGH}: worse at look 1"
    assert told.table[1]["verdict"] == "worse"


def test_a_barred_value_leaves_its_round_out_and_the_launches_go_on(told, not_needed):
    told.rounds(baseline=BASE, variant=TWICE)
    told.change_point(told.layout.attempt(ON, "2", 1), 2, validity="throttled")
    publish(told)

    assert not_needed(told.layout, ON, "4") is None
    row = told.table[1]
    assert (row["pairs"], row["left_out"], row["verdict"]) == (2, 1, "no_verdict")
    assert (row["stopped"], row["interval_low_percent"]) == (False, None)


def test_a_load_point_that_was_added_after_its_rounds_says_why_it_has_no_verdict(told, tmp_path):
    told.rounds(baseline=BASE, variant=TWICE)
    load = {"concurrency": [1, 2, 4], "input_len": 16, "output_len": 4}
    changed = {**PAIR, "primary": {"concurrency": 4}}
    grown = Compared(tmp_path, campaign(axes=AXES, compare=[changed], load=load))

    low, _, added = grown.table

    assert (added["primary"], added["verdict"], added["pairs"]) == (True, "no_verdict", 0)
    assert added["verdict_text"] == (
        "no verdict (the load point was added after 3 of 3 rounds had been measured; its points "
        "there are of extra launches, which are no pairs; fix: give the campaign another name, so "
        "that each round has it)"
    )
    assert low["verdict_text"] != added["verdict_text"]


def test_rounds_after_a_load_point_was_added_are_pairs_of_it(told, tmp_path):
    told.rounds(baseline=BASE[:2], variant=TWICE[:2])
    load = {"concurrency": [1, 2, 4], "input_len": 16, "output_len": 4}
    changed = {**PAIR, "primary": {"concurrency": 4}}
    grown = Compared(tmp_path, campaign(axes=AXES, compare=[changed], load=load))
    for number, (off, on) in enumerate(zip(BASE, TWICE, strict=True), 3):
        for cell, tpot_ms in ((OFF, off), (ON, on)):
            rates = {1: 64, 2: 100, 4: 120}
            grown.measured(cell, str(number), rates=rates, itl_s=tpot_ms / 1e3)

    *_, added = grown.table

    assert (added["verdict_text"], added["pairs"], added["left_out"]) == ("worse", 3, 2)
