"""The table of cells: one row per server configuration, with what is trusted and nulls else."""

from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest

from builders import campaign
from finished import Finished
from sgmatrix.core.files import read_json, write_json
from sgmatrix.core.schemas_cells import cells_schema
from sgmatrix.dataset.collect import Tables

LOAD = {"concurrency": [1, 4], "input_len": 16, "output_len": 4}
AB = {"parallelism": ["tp2", "tp1"]}


@pytest.fixture
def told(tmp_path):
    def told(**changes):
        return Finished(tmp_path, campaign(**{"axes": AB, "load": LOAD, **changes}))

    return told


def cells(made):
    """The rows of the table by cell, in its order."""
    made.collect()
    return {row["cell"]: row for row in pq.read_table(Tables.of(made.layout).cells).to_pylist()}


def values(row, text):
    return tuple(row[name] for name in text.split())


def test_a_cell_that_went_well_has_its_best_its_single_stream_and_its_phases(told):
    made = told()
    made.measured("tp2", rates={1: 32, 4: 96}, itl_s=0.004)
    row = cells(made)["tp2"]

    assert values(row, "campaign study status reason") == ("made-up", "tests", "ok", None)
    assert values(row, "axis_parallelism engine engine_version gpus") == (
        "tp2",
        "standin",
        "0.5.23+standin",
        0,
    )
    assert row["cell_key"] == made.plan["cells"]["tp2"]["key"]
    assert row["model"] == "tiny-qwen3-moe"
    assert values(row, "launches_planned launches_ok launches_failed attempts") == (1, 1, 0, 1)
    assert values(row, "points_planned points_ok points_failed points_flagged") == (2, 2, 0, 0)
    best = "best_output_tok_s best_concurrency best_launches best_input_len best_output_len"
    assert values(row, best) == (pytest.approx(96), 4, 1, 16, 4)
    assert row["best_load_id"] == "c0004-i16-o4-random-ids"
    assert row["best_tpot_ms_mean"] == pytest.approx(4)
    assert values(row, "single_tpot_ms_mean single_output_tok_s") == (
        pytest.approx(4),
        pytest.approx(32),
    )
    assert values(row, "start_s warmup_s bench_s teardown_s") == (2.5, 4.0, 3.0, 0.25)
    assert row["asked_at"] == datetime(2026, 11, 20, 10, tzinfo=UTC)
    assert row["finished_at"] == datetime(2026, 11, 20, 10, 1, tzinfo=UTC)
    assert row["argv"] == "python -m sglang.launch_server --port 3"
    assert values(row, "best_output_tok_s_per_gpu gpu_memory_used_mib_max") == (None, None)


def test_the_best_is_the_mean_over_launches_with_its_spread(told):
    made = told(launches=2)
    made.measured("tp2", "1", rates={1: 32, 4: 90})
    made.measured("tp2", "2", rates={1: 32, 4: 110})
    row = cells(made)["tp2"]

    names = "best_output_tok_s best_output_tok_s_low best_output_tok_s_high best_launches"
    assert values(row, names) == (pytest.approx(100), pytest.approx(90), pytest.approx(110), 2)
    assert values(row, "launches_planned launches_ok points_planned") == (2, 2, 4)


def test_what_a_flag_bars_is_not_the_best(told):
    made = told()
    made.measured("tp2", rates={1: 32, 4: 96}, validity={4: "foreign_load"})
    row = cells(made)["tp2"]

    assert values(row, "best_output_tok_s best_concurrency") == (pytest.approx(32), 1)
    assert values(row, "points_ok points_flagged status") == (2, 1, "ok")


def test_a_flag_on_latency_alone_leaves_the_best_without_its_tpot(told):
    made = told()
    made.measured("tp2", rates={1: 32, 4: 96}, validity={4: "queue_limited"})
    row = cells(made)["tp2"]

    assert values(row, "best_concurrency best_tpot_ms_mean") == (4, None)
    assert row["single_tpot_ms_mean"] is not None


def test_where_all_is_barred_there_is_no_best_and_it_is_null(told):
    made = told()
    made.measured("tp2", rates={1: 32, 4: 96}, validity={1: "cold", 4: "cold"})
    row = cells(made)["tp2"]

    best = [name for name in row if name.startswith(("best_", "single_"))]
    assert len(best) > 10
    assert {row[name] for name in best} == {None}


def test_a_cell_that_died_says_why_and_keeps_what_it_measured(told):
    made = told()
    made.died("tp2", root="RuntimeError: boom", rates={1: 32})
    row = cells(made)["tp2"]

    assert values(row, "status reason detail") == ("failed", "server_crash", "RuntimeError: boom")
    assert values(row, "launches_ok launches_failed points_ok points_failed") == (0, 1, 1, 1)
    assert values(row, "best_output_tok_s best_concurrency") == (pytest.approx(32), 1)


def test_a_rejected_cell_has_no_number_at_all(told):
    made = told()
    made.rejected("tp2", root="error: unrecognized arguments")
    row = cells(made)["tp2"]

    assert values(row, "status reason points_failed") == ("failed", "config_rejected", 2)
    numbers = "best_output_tok_s single_tpot_ms_mean start_s warmup_s argv"
    assert values(row, numbers) == (None,) * 5


def test_a_cell_that_did_not_run_is_a_row_of_nulls_with_its_counts(told):
    row = cells(told())["tp1"]

    assert values(row, "status reason planned attempts points_planned points_ok") == (
        "not_run",
        None,
        True,
        0,
        2,
        0,
    )
    assert values(row, "asked_at finished_at engine_version harness start_s argv") == (None,) * 6


def test_an_interrupted_cell_is_not_run_and_says_so(told):
    made = told()
    made.attempt("tp2", complete=False)

    assert values(cells(made)["tp2"], "status reason attempts") == ("not_run", "interrupted", 1)


def test_only_the_current_attempt_counts_and_all_are_counted(told):
    made = told()
    made.died("tp2", root="RuntimeError: boom", rates={1: 32})
    made.measured("tp2", rates={1: 32, 4: 64})
    row = cells(made)["tp2"]

    assert values(row, "status attempts launches_ok launches_failed") == ("ok", 2, 1, 0)
    assert row["best_output_tok_s"] == pytest.approx(64)


def test_a_cell_that_is_no_longer_planned_stays_a_row(told):
    old = told(axes={"parallelism": ["tp2"], "decode_steps": [1]})
    old.measured("tp2-ds1", rates={1: 32, 4: 64})
    found = cells(told())

    assert list(found) == ["tp2", "tp1", "tp2-ds1"]
    row = found["tp2-ds1"]
    assert values(row, "planned launches_planned points_planned points_ok") == (False, 0, 0, 2)
    assert values(row, "axis_decode_steps best_output_tok_s") == ("1", pytest.approx(64))


def test_the_most_memory_is_that_of_one_gpu(told):
    made = told()
    folder = made.measured("tp2", rates={1: 32, 4: 64})
    began_s = read_json(folder / "teardown.json")["server_times"]["started"]
    lines = [
        f'{{"t": {began_s + at}, "gpus": {{"0": {{"memory_used_mib": {one}}}, '
        f'"1": {{"memory_used_mib": 70}}}}}}'
        for at, one in ((1, 50), (2, 90), (3, 60))
    ]
    (folder / "telemetry.jsonl").write_text("\n".join(lines) + "\n")

    assert cells(made)["tp2"]["gpu_memory_used_mib_max"] == 90.0


def test_throughput_per_gpu_is_of_the_gpus_of_the_cell(told):
    made = told()
    plan = read_json(made.layout.plan)
    plan["cells"]["tp2"]["gpus"] = 2
    write_json(made.layout.plan, plan)
    made.measured("tp2", rates={1: 32, 4: 64})

    assert cells(made)["tp2"]["best_output_tok_s_per_gpu"] == pytest.approx(32)


def test_the_file_has_exactly_its_schema(told):
    made = told()
    made.collect()
    schema = pq.read_schema(Tables.of(made.layout).cells)

    assert schema.equals(cells_schema(["parallelism"]), check_metadata=False)
    assert schema.metadata[b"sgmatrix.schema"] == b"cells/1"
