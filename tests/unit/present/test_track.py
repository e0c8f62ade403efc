"""MLflow holds what the history says, once, whatever happens to the job."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import ViewType
from mlflow.exceptions import MlflowException

from builders import STARTED_AT, campaign
from finished import FINISHED_AT, Finished
from sgmatrix.core.clock import parse_utc
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json, write_json
from sgmatrix.core.version import HARNESS_VERSION
from sgmatrix.present.tracking import connection, synchronise
from sgmatrix.present.tracking.curves import curves_png
from sgmatrix.present.tracking.dashboard import varying_levers
from sgmatrix.present.tracking.metrics import Value, launch_metrics
from sgmatrix.present.tracking.target import Target
from sgmatrix.present.tracking.track import track_to

CRASH = "page_table_1_flattened"
SCRIPTS = Path(__file__).parents[3] / "workflow" / "scripts"


def at(database):
    return Target(f"sqlite:///{database}", str(database), database)


def track(layout, database, record):
    track_to(at(database), layout, record)


class Seen:
    """What MLflow holds, asked for with a client of the test's own."""

    def __init__(self, database, study="tests"):
        self.client = MlflowClient(f"sqlite:///{database}")
        self.experiment = self.client.get_experiment_by_name(study)

    def runs(self, **tags):
        found = self.client.search_runs(
            [self.experiment.experiment_id], run_view_type=ViewType.ALL, max_results=1000
        )
        named = {f"bench.{name}": text for name, text in tags.items()}
        return [run for run in found if named.items() <= run.data.tags.items()]

    def run(self, **tags):
        (run,) = self.runs(**tags)
        return run

    def history(self, run, key):
        return {one.step: one.value for one in self.client.get_metric_history(run.info.run_id, key)}

    def text(self, run, artifact):
        folder = Path(run.info.artifact_uri.removeprefix("file://"))
        return (folder / artifact).read_text()

    def everything(self):
        return {run.info.run_id: run.to_dictionary() for run in self.runs()}


@pytest.fixture(scope="module")
def shown(written, empty_database, tmp_path_factory):
    """The campaign in MLflow, to be looked at only."""
    database = tmp_path_factory.mktemp("shown") / "mlflow.db"
    shutil.copyfile(empty_database, database)
    track(written.layout, database, database.with_name("tracking.json"))
    return Seen(database)


@pytest.fixture
def record(told):
    return told.layout.root / "tracking.json"


@pytest.fixture
def seen(told, database, record):
    track(told.layout, database, record)
    return Seen(database)


def test_the_curve_of_a_cell_has_the_concurrency_as_step(shown):
    run = shown.run(cell="tp2")

    assert shown.history(run, "by_concurrency/output_tok_s") == {1: 60.0, 2: 125.0}
    assert shown.history(run, "by_concurrency/tpot_ms_p99") == pytest.approx({1: 1.0, 2: 1.0})
    assert shown.history(run, "by_concurrency/ok_ratio") == {1: 1.0, 2: 1.0}


def test_the_summary_of_a_cell_is_its_peak_and_its_single_stream(shown):
    metrics = shown.run(cell="tp2").data.metrics
    once = {key: value for key, value in metrics.items() if not key.startswith("by_concurrency/")}

    assert once == pytest.approx(
        {
            "summary/peak_output_tok_s": 125.0,
            "summary/peak_at_concurrency": 2.0,
            "summary/single_stream_tpot_ms": 1.0,
            "summary/single_stream_tok_s": 60.0,
            "summary/ok_ratio": 1.0,
            "phase/start_s": 2.5,
            "phase/warmup_s": 4.0,
            "phase/bench_s": 3.0,  # two points of 1.5 s
            "phase/teardown_s": 0.25,
        }
    )


def test_a_run_is_top_level_has_the_real_times_and_short_levers(shown):
    run = shown.run(cell="tp1")
    start, end = (parse_utc(utc).timestamp() * 1000 for utc in (STARTED_AT, FINISHED_AT))

    assert (run.info.start_time, run.info.end_time) == (start, end)
    assert run.info.status == "FINISHED" and run.info.run_name == "tp1"
    assert "mlflow.parentRunId" not in run.data.tags
    assert run.data.params == {
        "parallelism": "tp1",
        "engine": "standin",
        "engine_version": "0.5.23+standin",
        "model": "tiny-qwen3-moe",
        "gpus": "0",
        "dataset": "random-ids",
        "input_len": "16",
        "output_len": "4",
        "launch": "1",
        "seed": "1",
        "client": run.data.params["client"],
        "harness": str(HARNESS_VERSION),
    }


def test_tags_say_which_launch_it_is_and_that_it_counts(shown, written):
    tags = shown.run(cell="tp1").data.tags

    assert tags["bench.key"] == "made-up/tp1/1"
    assert tags["bench.kind"] == "cell" and tags["bench.campaign"] == "made-up"
    assert tags["bench.cell_key"] == written.plan["cells"]["tp1"]["key"]
    assert (tags["bench.launch"], tags["bench.attempt"]) == ("1", "1")
    assert (tags["bench.current"], tags["bench.status"]) == ("true", "ok")
    assert "bench.failure" not in tags and "bench.superseded_by" not in tags


def test_a_failed_launch_is_a_failed_run_with_its_reason(shown):
    run = shown.run(cell="tp4")
    note = run.data.tags["mlflow.note.content"]

    assert run.info.status == "FAILED"
    assert run.data.tags["bench.status"] == "failed"
    assert run.data.tags["bench.failure"] == "server_crash"
    assert "server.log, line 100: AttributeError" in note and CRASH in note
    assert "snakemake --configfile results/made-up/cells/tp4/cell.yaml" in note


def test_a_failed_point_has_no_metric_and_no_zero(shown):
    run = shown.run(cell="tp4")

    assert shown.history(run, "by_concurrency/output_tok_s") == {1: 400.0}
    assert 0.0 not in run.data.metrics.values()
    assert "summary/ok_ratio" not in run.data.metrics  # how many came back at 2 is not known


def test_a_server_that_never_was_ready_has_no_start_time_and_no_curve(tmp_path, database):
    history = Finished(tmp_path, campaign(campaign="refused"))
    history.rejected("tp1", root="error: unrecognized arguments: --no-such-flag 1")
    track(history.layout, database, history.layout.root / "tracking.json")
    run = Seen(database).run(campaign="refused")

    assert run.data.metrics == {"phase/teardown_s": 0.25}
    assert run.data.tags["bench.failure"] == "config_rejected"


def test_only_what_was_measured_and_is_finite_becomes_a_metric():
    point = {"concurrency": 1, "status": "ok", "validity": "valid", "asked": 8, "completed": 8}
    bad = {"output_tok_s": float("inf"), "tpot_ms_p50": float("nan"), "ttft_ms_p50": None}
    keys = {one.key for one in launch_metrics([{**point, **bad}], {}, end_ms=1)}

    assert keys == {"by_concurrency/ok_ratio", "summary/ok_ratio"}


def test_a_barred_point_is_drawn_but_is_no_peak():
    point = {"status": "ok", "asked": 8, "completed": 8}
    points = [
        {**point, "concurrency": 1, "output_tok_s": 64.0, "validity": "valid"},
        {**point, "concurrency": 2, "output_tok_s": 900.0, "validity": "partial"},
    ]
    values = {(one.key, one.step): one.value for one in launch_metrics(points, {}, end_ms=1)}

    assert values["by_concurrency/output_tok_s", 2] == 900.0
    assert values["summary/peak_output_tok_s", 0] == 64.0


def test_artifacts_carry_the_cell_the_command_line_the_points_and_the_end_of_the_log(
    told, database, record
):
    log = "".join(f"line {n}\n" for n in range(1, 300)) + "\x1b[31mapi_key='sk-1' end\x1b[0m\n"
    told.measured("tp1", rates={1: 64}, log=log)
    track(told.layout, database, record)
    seen = Seen(database)
    run = seen.run(cell="tp1", attempt="2")
    lines = seen.text(run, "server.log").splitlines()

    assert (len(lines), lines[0], lines[-1]) == (200, "line 101", "api_key=*** end")
    assert seen.text(run, "cell.yaml").startswith("# Reproduces this cell alone")
    assert json.loads(seen.text(run, "argv.json"))[:3] == ["python", "-m", "sglang.launch_server"]
    head, *rows = seen.text(run, "points.csv").splitlines()
    assert len(rows) == 2
    assert dict(zip(head.split(","), rows[0].split(","), strict=True))["output_tok_s"] == "64.0"


def test_a_secret_in_a_record_does_not_reach_mlflow(told, database, record):
    folder = told.rejected("tp1", root="bad api_key='sk-secret'", log="--api-key sk-secret\n")
    (folder / "cell.yaml").write_text("engines: {standin: {flags: {api_key: sk-secret}}}\n")
    spec = read_json(folder / "spec.json")
    spec["cell"]["arguments"] += ["--api-key", "sk-secret"]
    write_json(folder / "spec.json", spec)
    track(told.layout, database, record)
    seen = Seen(database)
    run = seen.run(cell="tp1", attempt="2")

    assert "sk-secret" not in json.dumps(run.to_dictionary())
    for name in ("cell.yaml", "argv.json", "points.csv", "server.log"):
        assert "sk-secret" not in seen.text(run, name), name
        assert "***" in seen.text(run, name) or name == "points.csv", name


def test_a_second_track_adds_and_changes_nothing(seen, told, database, record):
    before, first = seen.everything(), record.read_bytes()
    track(told.layout, database, record)

    assert len(before) == 3
    assert seen.everything() == before
    assert record.read_bytes() == first


def test_the_record_names_the_run_of_each_launch(seen, record):
    stored = read_json(record)

    assert stored["experiment_id"] == seen.experiment.experiment_id
    assert stored["runs"].keys() == {f"made-up/{cell}/1" for cell in ("tp1", "tp2", "tp4")}
    run = seen.run(cell="tp2")
    assert stored["runs"]["made-up/tp2/1"] == {
        "attempt": 1,
        "digest": run.data.tags["bench.digest"],
        "run_id": run.info.run_id,
    }


def test_a_new_attempt_supersedes_the_old_one(seen, told, database, record):
    old = seen.run(cell="tp4").info.run_id
    told.measured("tp4", rates={1: 90, 2: 180})
    track(told.layout, database, record)

    new = seen.run(cell="tp4", attempt="2")
    tags = seen.run(cell="tp4", attempt="1").data.tags
    assert (new.data.tags["bench.current"], new.info.status) == ("true", "FINISHED")
    assert (tags["bench.current"], tags["bench.superseded_by"]) == ("false", new.info.run_id)
    assert len(seen.runs(current="true")) == 3
    assert old == seen.run(cell="tp4", attempt="1").info.run_id  # kept, with its numbers


def test_an_interrupted_attempt_is_not_tracked(seen, told, database, record):
    told.attempt("tp4", complete=False)
    track(told.layout, database, record)

    assert len(seen.runs()) == 3
    assert seen.run(cell="tp4").data.tags["bench.current"] == "true"


def test_a_record_that_changed_is_a_new_run_in_the_place_of_the_old(seen, told, database, record):
    folder = told.layout.attempt("tp1", "1", 1)
    told.change_point(folder, 2, output_tok_s=101.0)
    track(told.layout, database, record)

    assert len(seen.runs(cell="tp1")) == 2
    run = seen.run(cell="tp1", current="true")
    assert seen.history(run, "by_concurrency/output_tok_s") == {1: 64.0, 2: 101.0}


def test_a_record_that_changed_back_is_the_old_run_again(seen, told, database, record):
    first = seen.run(cell="tp1").info.run_id
    folder = told.layout.attempt("tp1", "1", 1)
    for rate in (101.0, 100.0):
        told.change_point(folder, 2, output_tok_s=rate)
        track(told.layout, database, record)

    run = seen.run(cell="tp1", current="true")
    assert run.info.run_id == first and len(seen.runs(cell="tp1")) == 2
    assert "bench.superseded_by" not in run.data.tags


def test_the_commit_is_told_and_another_commit_is_no_other_result(
    told, database, record, monkeypatch
):
    for commit in ("a" * 40, "b" * 40):
        monkeypatch.setattr(synchronise, "commit", lambda commit=commit: commit)
        track(told.layout, database, record)

    tags = Seen(database).run(cell="tp1").data.tags
    assert tags["mlflow.source.git.commit"] == "a" * 40


@pytest.mark.parametrize(
    "call", ["log_batch", "log_inputs", "log_artifacts", "set_terminated", "set_tag"]
)
def test_a_job_that_is_killed_leaves_no_half_run_and_the_next_repairs_it(
    told, database, record, monkeypatch, call
):
    calls = []

    def killed(*arguments, **named):
        calls.append(call)
        if len(calls) == 2:  # in the middle of the second run
            raise KeyboardInterrupt
        return whole(*arguments, **named)

    whole = getattr(MlflowClient, call)
    monkeypatch.setattr(MlflowClient, call, killed)
    with pytest.raises(KeyboardInterrupt):
        track(told.layout, database, record)
    seen = Seen(database)
    assert not [run for run in seen.runs(current="true") if run.info.status == "RUNNING"]
    assert not record.exists()

    monkeypatch.undo()
    track(told.layout, database, record)
    assert not [run for run in seen.runs() if run.info.status == "RUNNING"]
    assert len(seen.runs(current="true")) == 3
    killed_runs = [run for run in seen.runs() if run.info.status == "KILLED"]
    assert len(killed_runs) == (0 if call == "set_tag" else 1)
    assert {run.data.tags["bench.current"] for run in killed_runs} <= {"false"}

    track(told.layout, database, record)  # what was killed is never taken for whole
    assert {run.info.status for run in seen.runs(current="true")} == {"FINISHED", "FAILED"}
    assert len(seen.runs(current="true")) == 3


def test_prompts_that_another_run_told_at_the_same_time_are_told_again(
    told, database, record, monkeypatch
):
    calls = []

    def late(self, *arguments, **named):
        calls.append(arguments)
        if len(calls) == 1:  # as PostgreSQL says it
            raise MlflowException('duplicate key value violates unique constraint "dataset_pk"')
        return whole(self, *arguments, **named)

    whole = MlflowClient.log_inputs
    monkeypatch.setattr(MlflowClient, "log_inputs", late)
    track(told.layout, database, record)
    seen = Seen(database)

    assert calls[0] == calls[1] and len(calls) == 4
    assert [len(run.inputs.dataset_inputs) for run in seen.runs(current="true")] == [1, 1, 1]


def test_a_study_that_another_job_begins_at_the_same_time_is_no_failure(
    told, database, record, monkeypatch
):
    calls = []

    def late(self, *arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise MlflowException('duplicate key value violates unique constraint "experiment_tag"')
        return whole(self, *arguments)

    whole = MlflowClient.set_experiment_tag
    monkeypatch.setattr(MlflowClient, "set_experiment_tag", late)
    track(told.layout, database, record)

    assert calls[0] == calls[1]
    assert len(Seen(database).runs()) == 3


def test_runs_of_others_are_left_alone(seen, told, database, record):
    experiment = seen.experiment.experiment_id
    theirs = seen.client.create_run(experiment, tags={"bench.campaign": "another"}).info.run_id
    track(told.layout, database, record)

    assert seen.client.get_run(theirs).info.status == "RUNNING"


def test_launches_of_a_repeated_cell_have_names_of_their_own(tmp_path, database):
    history = Finished(tmp_path, campaign(campaign="repeated", launches=2))
    history.measured("tp1", "1", rates={1: 64})
    history.measured("tp1", "2", rates={1: 66})
    track(history.layout, database, history.layout.root / "tracking.json")
    names = {run.info.run_name for run in Seen(database).runs(campaign="repeated")}

    assert names == {"tp1 launch 1", "tp1 launch 2"}


def test_a_launch_that_was_added_later_has_a_name_of_its_own(told, database, record):
    extra = told.layout.attempt("tp1", "1-extra1", 1)
    shutil.copytree(told.layout.attempt("tp1", "1", 1), extra)
    for file in extra.rglob("*.json"):
        write_json(file, {**read_json(file), "launch": "1-extra1"})
    track(told.layout, database, record)

    runs = Seen(database).runs(cell="tp1", current="true")
    assert {run.info.run_name for run in runs} == {"tp1", "tp1 launch 1-extra1"}


def test_a_file_that_is_no_database_is_refused_at_once(told, record):
    database = told.layout.root.parent / "mlflow.db"
    database.write_text("version https://git-lfs.github.com/spec/v1\n")

    with pytest.raises(SgmatrixError, match="is no SQLite database") as caught:
        track(told.layout, database, record)
    assert caught.value.code == "tracking_failed"


def test_a_study_in_the_trash_is_named_with_the_way_out(seen, told, database, record):
    seen.client.delete_experiment(seen.experiment.experiment_id)

    with pytest.raises(SgmatrixError, match="mlflow experiments restore") as caught:
        track(told.layout, database, record)
    assert caught.value.code == "experiment_deleted"


def test_a_second_job_waits_for_the_first_and_says_so_when_it_waits_too_long(
    told, database, record, monkeypatch
):
    monkeypatch.setattr(connection, "LOCK_WAIT_S", 0.1)
    with connection.locked(at(database), database.parent), pytest.raises(SgmatrixError) as caught:
        track(told.layout, database, record)

    assert caught.value.code == "tracking_busy"


def test_jobs_of_several_campaigns_may_begin_on_a_fresh_database_in_a_folder_with_a_space(told):
    studies = ("tests", "another study", "a third")
    roots = [told.layout.root]
    for study in studies[1:]:
        other = told.layout.root.parent / f"with a space, {study}" / "made-up"
        shutil.copytree(told.layout.root, other)
        plan = read_json(other / "plan.json")
        write_json(other / "plan.json", {**plan, "study": study})
        roots.append(other)
    database = other.parent / "mlflow.db"
    code = (
        "import sys; from pathlib import Path; from sgmatrix.core.layout import Layout; "
        "from sgmatrix.present.tracking.track import track; "
        "track(Layout(Path(sys.argv[1])), sys.argv[2], Path(sys.argv[1]) / 'tracking.json')"
    )
    jobs = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(root), f"sqlite:///{database}"], cwd=SCRIPTS
        )
        for root in roots
    ]

    assert [job.wait(60) for job in jobs] == [0, 0, 0]
    assert [len(Seen(database, study).runs()) for study in studies] == [3, 3, 3]
    leftovers = {file.name for file in database.parent.glob("*mlflow*")}
    assert leftovers == {"mlflow.db", ".mlflow.db.lock"}


def test_curves_of_several_workloads_do_not_mix():
    point = {"status": "ok", "asked": 8, "completed": 8, "validity": "valid", "concurrency": 1}
    points = [
        {**point, "load_id": "c0001-i16-o4-random", "output_tok_s": 64.0},
        {**point, "load_id": "c0001-i512-o4-random", "output_tok_s": 9.0},
    ]
    values = {one.key: one.value for one in launch_metrics(points, {}, end_ms=1)}

    assert values["by_concurrency/i16-o4-random/output_tok_s"] == 64.0
    assert values["by_concurrency/i512-o4-random/output_tok_s"] == 9.0


def test_the_peak_stands_beside_its_ceiling():
    point = {"status": "ok", "asked": 8, "completed": 8, "validity": "valid"}
    points = [
        {**point, "concurrency": 1, "output_tok_s": 64.0, "practical_ratio": 0.9},
        {**point, "concurrency": 2, "output_tok_s": 100.0, "practical_ratio": 0.5},
    ]
    values = {one.key: one.value for one in launch_metrics(points, {}, end_ms=1)}

    assert values["summary/ceiling_fraction"] == 0.5


def test_a_run_shows_its_prompts_its_points_and_a_picture(shown):
    run = shown.run(cell="tp2")
    (used,) = run.inputs.dataset_inputs
    source = json.loads(used.dataset.source)

    assert (source["dataset"], source["input_len"], source["output_len"]) == ("random-ids", 16, 4)
    assert "| c0002-i16-o4-random-ids | 125.0 |" in run.data.tags["mlflow.note.content"]
    folder = Path(run.info.artifact_uri.removeprefix("file://"))
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_of_the_same_numbers_has_the_same_bytes():
    values = [Value("by_concurrency/output_tok_s", 60.0 * n, 1, n) for n in (1, 2)]

    assert curves_png(values) == curves_png(values)
    assert curves_png(values) != curves_png(values[:1])
    assert curves_png([Value("phase/start_s", 1.0, 1, 0)]) is None


def test_a_long_lever_is_cut_and_no_metric_is_lost(told, database, record):
    folder = told.layout.attempt("tp1", "1", 1)
    spec = read_json(folder / "spec.json")
    spec["cell"]["axes_text"]["parallelism"] = "x" * 9000
    write_json(folder / "spec.json", spec)
    track(told.layout, database, record)
    run = Seen(database).run(cell="tp1")

    assert len(run.data.params["parallelism"]) == 300
    assert run.data.metrics["summary/peak_output_tok_s"] == 100.0


def test_a_run_says_what_it_ran_on(told, database, record):
    folder = told.layout.attempt("tp2", "1", 1)
    gpus = [{"name": "NVIDIA H200"}] * 2
    (folder / "node.json").write_text(json.dumps({"gpus": gpus, "processor": "EPYC"}))
    track(told.layout, database, record)
    seen = Seen(database)

    assert seen.run(cell="tp2").data.tags["bench.hardware"] == "2 x NVIDIA H200"
    assert "bench.hardware" not in seen.run(cell="tp1").data.tags


def test_the_page_has_the_levers_that_the_campaign_moves():
    axes = [{"parallelism": "tp1", "decode_steps": str(n), "oea": None} for n in (1, 2)]
    plan = {"cells": {str(n): {"axes_text": one} for n, one in enumerate(axes)}}

    assert varying_levers(plan) == ("decode_steps",)


def test_the_page_of_all_cells_is_stored_once(seen, told, database, record):
    track(told.layout, database, record)
    tags = seen.client.get_experiment(seen.experiment.experiment_id).tags
    (name,) = [name for name in tags if name.startswith("mlflow.sharedViewState.")]

    assert read_json(record)["page"].endswith(f"viewStateShareKey={name.rpartition('.')[2]}")
    assert tags["mlflow.experimentKind"] == "custom_model_development"


def test_the_report_is_one_run_whose_page_is_replaced(told, database, record):
    page = told.layout.root / "report" / "index.html"
    page.parent.mkdir(exist_ok=True)
    for text in ("first", "second", "second"):
        page.write_text(text)
        track(told.layout, database, record)
    seen = Seen(database)

    assert seen.text(seen.run(kind="report"), "report.html") == "second"
