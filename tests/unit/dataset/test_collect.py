"""The history of all attempts as tables: what counts, what is null, in which order."""

import json
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest

from builders import PROJECT, History, campaign, client_line
from finished import Finished
from sgmatrix.core.files import write_json
from sgmatrix.core.schemas import REQUESTS, points_schema
from sgmatrix.core.version import HARNESS_VERSION
from sgmatrix.dataset.collect import Tables, collect
from sgmatrix.dataset.history import read_attempts
from sgmatrix.dataset.points import point_rows
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.plan import make_plan, plan_record

AB = {"parallelism": ["tp2", "tp1"]}  # not in the order of names
LOW, HIGH = "c0001-i16-o4-random-ids", "c0002-i16-o4-random-ids"


@pytest.fixture
def history(tmp_path):
    def history(**changes):
        return History(tmp_path, campaign(**{"axes": AB, **changes}))

    return history


def rows(made, *columns):
    """These columns of `points`, as tuples in the order of the table."""
    return [tuple(row.get(name) for name in columns) for row in point_rows(made.layout)[0]]


def tables(made):
    paths = Tables.of(made.layout)
    collect(made.layout, paths)
    return paths.points, paths.requests


# --- which attempt counts ------------------------------------------------------------------------


def test_the_newest_complete_attempt_is_the_current_one(history):
    made = history()
    for complete in (True, True, False):
        made.attempt("tp1", complete=complete)

    attempts = read_attempts(made.layout)

    assert [(a.spec["attempt"], a.current) for a in attempts] == [
        (1, False),
        (2, True),
        (3, False),
    ]


def test_attempts_are_counted_as_numbers(history):
    made = history()
    for number in (9, 10):
        made.attempt("tp1", number=number)

    assert [a.spec["attempt"] for a in read_attempts(made.layout) if a.current] == [10]


def test_each_launch_and_cell_has_a_current_attempt_of_its_own(history):
    made = history(launches=2)
    made.attempt("tp1", "1")
    made.attempt("tp1", "2")
    made.attempt("tp2", "1", complete=False)

    current = [
        (a.spec["cell"]["id"], a.spec["launch"]) for a in read_attempts(made.layout) if a.current
    ]
    assert current == [("tp1", "1"), ("tp1", "2")]


@pytest.mark.parametrize("content", ["", '{"status": "o'])
def test_a_half_written_teardown_is_an_interruption(history, content):
    made = history()
    folder = made.attempt("tp1")
    (folder / "teardown.json").write_text(content)

    (attempt,) = read_attempts(made.layout)
    assert (attempt.final, attempt.current) == (None, False)


def test_an_attempt_that_never_wrote_what_it_was_to_start_is_passed_over(history):
    made = history()
    made.layout.attempt("tp1", "1", 1).mkdir(parents=True)

    assert read_attempts(made.layout) == []


# --- rows of points ------------------------------------------------------------------------------


def test_a_campaign_that_never_ran_is_all_rows_not_run_in_the_order_of_the_plan(history):
    made = history()

    assert rows(made, "cell", "load_id", "status", "attempt", "current", "reason") == [
        ("tp2", LOW, "not_run", None, True, None),
        ("tp2", HIGH, "not_run", None, True, None),
        ("tp1", LOW, "not_run", None, True, None),
        ("tp1", HIGH, "not_run", None, True, None),
    ]


def test_a_measured_point_carries_its_numbers_and_what_they_are_of(history):
    made = history()
    made.attempt("tp2", lines={LOW: client_line(8, ttft_s=0.02, itl_s=0.004, duration_s=2.0)})
    row = point_rows(made.layout)[0][0]

    planned = made.plan["launches"][0]["points"][0]
    cell = made.plan["cells"]["tp2"]
    assert (row["campaign"], row["study"], row["cell"]) == ("made-up", "tests", "tp2")
    assert (row["cell_key"], row["point_key"]) == (cell["key"], planned["key"])
    assert (row["launch"], row["attempt"], row["current"]) == ("1", 1, True)
    assert (row["status"], row["validity"]) == ("ok", "valid")
    assert (row["concurrency"], row["input_len"], row["output_len"]) == (1, 16, 4)
    assert (row["asked"], row["completed"], row["failed"]) == (8, 8, 0)
    assert row["output_tok_s"] == 16.0  # 32 tokens in 2 s
    assert row["tpot_ms_mean"] == pytest.approx(4)
    assert row["e2e_ms_p99"] == pytest.approx(32)
    assert row["axis_parallelism"] == "tp2"
    assert (row["engine"], row["engine_version"]) == ("standin", "0.5.23+standin")
    assert (row["seed"], row["client"]) == (planned["seed"], "sglang-python 0.5.23+standin")
    assert row["started_at"] == datetime(2026, 11, 20, 10, tzinfo=UTC)
    assert "reason" not in row or row["reason"] is None


def test_a_failed_point_is_a_row_without_numbers(history):
    made = history()
    made.attempt("tp2", reason="oom_runtime")
    columns = ("load_id", "current", "status", "reason", "detail", "output_tok_s")

    assert rows(made, *columns)[:2] == [
        (LOW, True, "ok", None, None, 64.0),
        (HIGH, True, "failed", "oom_runtime", "its root line", None),
    ]


def test_points_of_an_interrupted_attempt_are_kept_and_the_plan_still_wants_them(history):
    made = history()
    made.attempt("tp2", points=1, complete=False)

    assert rows(made, "load_id", "attempt", "current", "status", "reason")[:4] == [
        (LOW, None, True, "not_run", None),
        (HIGH, None, True, "not_run", None),
        (LOW, 1, False, "ok", None),
        (HIGH, 1, False, "not_run", "interrupted"),
    ]


def test_a_superseded_attempt_stays_a_row(history):
    made = history()
    made.attempt("tp2", reason="server_crash")
    made.attempt("tp2")

    assert rows(made, "load_id", "attempt", "current", "status")[:4] == [
        (LOW, 1, False, "ok"),
        (HIGH, 1, False, "failed"),
        (LOW, 2, True, "ok"),
        (HIGH, 2, True, "ok"),
    ]


def test_rows_come_by_cell_as_planned_then_launch_attempt_and_load(history):
    made = history(launches=2)
    for launch, cell in (("2", "tp1"), ("1", "tp1"), ("2", "tp2"), ("1", "tp2"), ("1", "tp1")):
        made.attempt(cell, launch)

    assert rows(made, "cell", "launch", "attempt", "load_id") == [
        *[("tp2", launch, 1, load) for launch in "12" for load in (LOW, HIGH)],
        *[("tp1", "1", attempt, load) for attempt in (1, 2) for load in (LOW, HIGH)],
        *[("tp1", "2", 1, load) for load in (LOW, HIGH)],
    ]


def test_a_cell_that_the_campaign_no_longer_plans_is_kept_at_the_end(history):
    history(axes={"parallelism": ["tp2"], "decode_steps": [1]}).attempt("tp2-ds1")
    made = history()  # the same campaign with other axes

    table, schema = point_rows(made.layout)
    assert [row["cell"] for row in table] == ["tp2", "tp2", "tp1", "tp1", "tp2-ds1", "tp2-ds1"]
    assert schema.names[-2:] == ["axis_decode_steps", "axis_parallelism"]


def test_running_one_cell_again_keeps_all_rows_and_their_order(history, tmp_path):
    made = history(launches=2)
    made.attempt("tp2", "1")
    before = rows(made, "cell", "launch", "load_id")
    alone = Campaign.model_validate(made.plan["cells"]["tp1"]["reproduce"])
    again = plan_record(make_plan(alone, made.layout, PROJECT), alone, made.plan)
    write_json(made.layout.plan, again)

    assert rows(made, "cell", "launch", "load_id") == before


# --- the files -----------------------------------------------------------------------------------


def test_requests_hold_every_request_and_failed_ones_have_no_latencies(history):
    made = history()
    made.attempt("tp2", lines={HIGH: client_line(8, failed=3)})
    points, requests = tables(made)

    table = pq.read_table(requests)
    assert table.schema.equals(REQUESTS, check_metadata=False)
    kept = table.to_pylist()
    assert [row["request"] for row in kept] == [*range(8), *range(8)]
    failed = [row for row in kept if not row["ok"]]
    assert [(row["load_id"], row["error"]) for row in failed] == [
        (HIGH, "Internal Server Error")
    ] * 3
    for row in failed:
        assert [row[f"{name}_ms"] for name in ("ttft", "tpot", "e2e", "itl")] == [None] * 4
    assert all(row["ttft_ms"] == pytest.approx(10) for row in kept if row["ok"])
    assert pq.read_table(points).num_rows == 4


def test_points_are_written_with_exactly_their_schema_and_nulls_for_what_is_missing(history):
    made = history()
    made.attempt("tp2", reason="client_timeout")
    points, _ = tables(made)

    table = pq.read_table(points)
    wanted = points_schema(["parallelism"])
    assert table.schema.equals(wanted, check_metadata=False)
    assert table.schema.metadata[b"sgmatrix.schema"].startswith(b"points/")
    assert json.loads(table.schema.metadata[b"sgmatrix.provenance"]) == {
        "campaign": "made-up",
        "attempts": 1,
        "harness": [HARNESS_VERSION],
        "engines": {"standin": ["0.5.23+standin"]},
    }
    failed = table.to_pylist()[1]
    assert failed["status"] == "failed"
    measured = ("output_tok_s", "duration_s", "completed", "ttft_ms_p50", "power_w_mean")
    assert [failed[name] for name in measured] == [None] * 5


def test_collecting_again_gives_the_same_bytes(history):
    made = history(launches=2)
    made.attempt("tp1", "2")
    made.attempt("tp2", "1", reason="server_crash")
    made.attempt("tp2", "1", complete=False, points=1)
    first = [file.read_bytes() for file in tables(made)]

    assert [file.read_bytes() for file in tables(made)] == first


def test_a_history_that_was_copied_gives_the_same_bytes(history, tmp_path):
    made = history()
    made.attempt("tp2")
    made.attempt("tp1", reason="oom_weights")
    first = [file.read_bytes() for file in tables(made)]
    elsewhere = tmp_path / "at-home" / "made-up"
    elsewhere.parent.mkdir()
    made.layout.root.rename(elsewhere)
    made.layout = type(made.layout)(elsewhere)

    assert [file.read_bytes() for file in tables(made)] == first


def test_rows_without_a_record_are_left_out_of_the_requests(history):
    made = history()
    folder = made.attempt("tp2")
    (folder / "points" / f"{HIGH}.json").unlink()  # it is written last: without it, half a point
    _, requests = tables(made)

    assert {row["load_id"] for row in pq.read_table(requests).to_pylist()} == {LOW}


def test_without_any_attempt_both_files_are_there(history):
    points, requests = tables(history())

    assert (pq.read_table(points).num_rows, pq.read_table(requests).num_rows) == (4, 0)
    assert pq.read_table(requests).schema.equals(REQUESTS, check_metadata=False)


# --- what only several points together say -------------------------------------------------------


def test_scaling_is_against_concurrency_1_of_the_same_attempt(tmp_path):
    load = {"concurrency": [1, 4], "request_rate": [2.0], "input_len": 16, "output_len": 4}
    made = History(tmp_path, campaign(load=load))
    lines = {
        "c0001-i16-o4-random-ids": client_line(8, duration_s=1.0),  # 32 tok/s
        "c0004-i16-o4-random-ids": client_line(16, duration_s=1.0),  # 64 tok/s
    }
    made.attempt("tp1", lines=lines)
    made.attempt("tp1", lines={**lines, "c0001-i16-o4-random-ids": client_line(8)})  # 64 tok/s

    found = rows(made, "attempt", "concurrency", "request_rate", "scaling_efficiency")
    assert found == [
        (1, 1, None, 1.0),
        (1, 4, None, 0.5),  # 64 / (4 x 32)
        (1, None, 2.0, None),
        (2, 1, None, 1.0),
        (2, 4, None, 0.25),
        (2, None, 2.0, None),
    ]


@pytest.mark.parametrize(
    ("validity", "want"), [("valid", 0.5), ("queue_limited", 0.5), ("partial", None)]
)
def test_scaling_is_not_against_a_point_that_is_no_throughput(tmp_path, validity, want):
    load = {"concurrency": [1, 4], "input_len": 16, "output_len": 4}
    made = Finished(tmp_path, campaign(load=load))
    made.measured("tp1", rates={1: 32, 4: 64}, validity={1: validity})

    assert rows(made, "scaling_efficiency")[1] == (want,)


def test_without_concurrency_1_there_is_no_scaling(tmp_path):
    load = {"concurrency": [2, 4], "input_len": 16, "output_len": 4}
    made = History(tmp_path, campaign(load=load))
    made.attempt("tp1")

    assert rows(made, "scaling_efficiency") == [(None,), (None,)]
