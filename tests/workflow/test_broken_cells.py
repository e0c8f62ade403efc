"""One bad cell never stops a campaign, and is never lost."""

import json
import subprocess
from collections import Counter

import pyarrow.parquet as pq
import pytest

from lab import Lab

pytestmark = pytest.mark.workflow

REFUSED, DYING = "tp1-no-such-flag-1", "tp1-standin-fault-die-after-5"
Finished = tuple[Lab, subprocess.CompletedProcess[str]]


def test_campaign_with_broken_cells_ends_with_exit_code_0(broken: Finished) -> None:
    lab, run = broken
    assert run.returncode == 0, run.stdout
    assert (lab.root / "report/index.html").exists()


def test_every_planned_point_is_one_row_with_its_outcome(broken: Finished) -> None:
    rows = broken[0].points()
    assert len(rows) == 4 * 2
    outcomes = {(row["cell"], row["concurrency"]): (row["status"], row["reason"]) for row in rows}
    for cell in ("tp1", "tp2"):
        assert outcomes[cell, 1] == outcomes[cell, 2] == ("ok", None)
    assert outcomes[REFUSED, 1] == outcomes[REFUSED, 2] == ("skipped", "config_rejected")
    assert outcomes[DYING, 1] == ("ok", None)  # 1 probe, 1 warm-up, 2 requests
    assert outcomes[DYING, 2] == ("failed", "server_crash")


def test_healthy_points_hold_what_was_asked(broken: Finished) -> None:
    ok = [row for row in broken[0].points() if row["cell"] == "tp1"]
    assert [(row["asked"], row["completed"], row["failed"]) for row in ok] == [(2, 2, 0), (4, 4, 0)]
    assert all(row["ttft_ms_mean"] > 0 for row in ok)
    assert all("cold: there was one warm-up wave" in row["validity_detail"] for row in ok)


def test_failed_points_have_no_latency(broken: Finished) -> None:
    failed = [row for row in broken[0].points() if row["status"] != "ok"]
    assert len(failed) == 3
    for row in failed:
        assert row["output_tok_s"] is row["tpot_ms_mean"] is row["ttft_ms_p99"] is None


def test_requests_are_kept_one_by_one(broken: Finished) -> None:
    table = pq.read_table(broken[0].root / "datasets/requests.parquet")
    rows = [row for row in table.to_pylist() if row["cell"] == "tp2"]
    assert [row["request"] for row in rows] == [0, 1, 0, 1, 2, 3]
    assert all(row["ok"] and row["output_tokens"] == 4 and len(row["itl_ms"]) == 3 for row in rows)


def test_the_dead_servers_root_line_is_in_its_record(broken: Finished) -> None:
    final = json.loads((broken[0].root / f"cells/{DYING}/launch-1/teardown.json").read_text())
    assert final["status"] == "failed"
    assert "page_table_1_flattened" in final["closed"]["root_line"]


def test_refusal_of_the_engine_is_quoted(broken: Finished) -> None:
    final = json.loads((broken[0].root / f"cells/{REFUSED}/launch-1/teardown.json").read_text())
    assert "unrecognized arguments: --no-such-flag 1" in final["closed"]["root_line"]


def test_check_names_the_failed_cells_and_ends_with_1(broken: Finished) -> None:
    run = broken[0].snakemake("check")
    assert run.returncode == 1
    assert REFUSED in run.stdout and "config_rejected" in run.stdout
    assert DYING in run.stdout and "server_crash" in run.stdout
    assert "Traceback" not in run.stdout


def test_second_run_has_nothing_to_do_and_says_so(broken: Finished) -> None:
    lab, _ = broken
    before = lab.attempts()
    run = lab.snakemake()
    assert run.returncode == 0
    assert "Nothing to be done" in run.stdout
    assert lab.attempts() == before == {cell: ["1"] for cell in before}


def test_every_server_came_alone(broken: Finished) -> None:
    running: set[str] = set()
    for event in broken[0].events():
        if event["event"] == "starting":
            assert running == set(), f"{event['cell']} starts while {running} runs"
            running.add(event["cell"])
        if event["event"] == "stopping":
            running.discard(event["cell"])
    assert Counter(event["event"] for event in broken[0].events())["starting"] == 4


def test_no_process_is_left(broken: Finished) -> None:
    assert broken[0].processes() == []


def test_mlflow_and_report_tell_the_same_story(broken: Finished) -> None:
    from mlflow import MlflowClient

    lab, _ = broken
    client = MlflowClient(f"sqlite:///{lab.folder / 'results/mlflow.db'}")
    (experiment,) = [one for one in client.search_experiments() if one.name == "tests"]
    told = {
        run.info.run_name: (run.info.status, run.data.tags.get("bench.failure"))
        for run in client.search_runs([experiment.experiment_id], "tags.bench.kind = 'cell'")
    }
    assert told == {
        "tp1": ("FINISHED", None),
        "tp2": ("FINISHED", None),
        REFUSED: ("FAILED", "config_rejected"),
        DYING: ("FAILED", "server_crash"),
    }
    page = (lab.root / "report/index.html").read_text()
    for words in (REFUSED, "config_rejected", DYING, "server_crash", "page_table_1_flattened"):
        assert words in page
