"""The default campaign on the real SGLang CPU engine, from a folder with nothing in it."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

PROJECT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    segments = sorted(path.name for path in Path("/dev/shm").glob("sgl_shm_*"))
    run = subprocess.run(
        [Path(sys.executable).with_name("snakemake"), "--directory", folder],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    # killed ranks leave their shared memory behind; the wardens take it away
    assert sorted(path.name for path in Path("/dev/shm").glob("sgl_shm_*")) == segments
    return folder / "results"


def test_every_planned_point_was_measured(results: Path) -> None:
    rows = pq.read_table(results / "demo/datasets/points.parquet").to_pylist()
    assert [(row["cell"], row["concurrency"]) for row in rows] == [
        (cell, concurrency)
        for cell in (
            "tp1-ds1-mf0.02-oea-off",
            "tp2-ds1-mf0.02-oea-off",
            "tp1-ds4-mf0.02-oea-off",
            "tp1-ds1-mf0.01-oea-off",
            "tp1-ds1-mf0.04-oea-off",
            "tp1-ds1-mf0.02-oea2",
        )
        for concurrency in (1, 2, 8)
    ]
    for row in rows:
        assert (row["status"], row["failed"]) == ("ok", 0), row
        assert row["completed"] == row["asked"] == max(8, 4 * row["concurrency"])
        assert row["engine_version"] == "0.5.23"


def test_every_request_gave_the_tokens_that_were_asked(results: Path) -> None:
    requests = pq.read_table(results / "demo/datasets/requests.parquet")
    assert requests.num_rows == 6 * (8 + 8 + 32)
    assert set(requests["output_tokens"].to_pylist()) == {64}
    assert min(requests["ttft_ms"].to_pylist()) > 0


def test_the_kv_pools_really_differ(results: Path) -> None:
    tokens = {}
    for share in ("0.01", "0.02", "0.04"):
        path = results / f"demo/cells/tp1-ds1-mf{share}-oea-off/launch-1/teardown.json"
        tokens[share] = json.loads(path.read_text())["info"]["max_total_num_tokens"]
    assert 0 < tokens["0.01"] < tokens["0.02"] < tokens["0.04"]


def test_mlflow_has_one_finished_run_per_launch(results: Path) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{(results / 'mlflow.db').resolve()}")
    (experiment,) = [e for e in client.search_experiments() if e.name == "sglang-matrix/demo"]
    runs = client.search_runs([experiment.experiment_id], "tags.`bench.kind` = 'cell'")
    assert sorted(run.info.run_name for run in runs) == [
        "tp1-ds1-mf0.01-oea-off",
        "tp1-ds1-mf0.02-oea-off",
        "tp1-ds1-mf0.02-oea2",
        "tp1-ds1-mf0.04-oea-off",
        "tp1-ds4-mf0.02-oea-off",
        "tp2-ds1-mf0.02-oea-off",
    ]
    assert {run.info.status for run in runs} == {"FINISHED"}


def test_oea_has_run_and_its_experts_are_counted(results: Path) -> None:
    on, off = (results / f"demo/cells/tp1-ds1-mf0.02-{oea}" for oea in ("oea2", "oea-off"))
    warmup = json.loads((on / "launch-1/teardown.json").read_text())["warmup"]
    (rank,) = warmup["proof"]
    assert (rank["core"], rank["k0"], rank["check"]["ok"]) == ("eager", 2, True)
    assert rank["calls"] > 0
    assert json.loads((off / "launch-1/teardown.json").read_text())["warmup"]["proof"] == []

    counted = {}
    for name, folder in (("on", on), ("off", off)):
        probe = json.loads((folder / "probe/probe.json").read_text())
        assert (probe["status"], probe["detail"]) == ("ok", None)
        counted[name] = {int(b): x["activated_mean"] for b, x in probe["batches"].items()}
        assert (
            probe["quality"]["tokens"] == 8 * 23
        )  # the first token of each comes from the prefill
    assert counted["off"][1] == counted["on"][1] == 4  # both fill up to the model's top-k
    assert counted["on"][8] < counted["off"][8]
    rows = pq.read_table(results / "demo/datasets/experts.parquet").to_pylist()
    assert {(row["cell"], row["batch"]) for row in rows} == {
        (folder.name, batch) for folder in (on, off) for batch in (1, 2, 8)
    }
    assert {row["top_k"] for row in rows} == {4}
    assert {row["experts"] for row in rows} == {16}


def test_every_point_is_set_beside_its_ceiling(results: Path) -> None:
    probe = json.loads((results / "demo/node-probe.json").read_text())
    assert probe["status"] == "ok", probe
    rows = pq.read_table(results / "demo/datasets/ceilings.parquet").to_pylist()
    assert {row["why_not"] for row in rows} == {None}
    assert {row["kv_source"] for row in rows} == {"server"}
    assert {row["distinct_source"] for row in rows if row["cell"].endswith("oea2")} == {"probe"}
    for row in pq.read_table(results / "demo/datasets/points.parquet").to_pylist():
        # a tiny model on a slow engine: the memory is far from busy
        assert 0 < row["hard_ratio"] < row["practical_ratio"] < 1
    html = (results / "demo/report/index.html").read_text()
    assert "Distance from physics" in html
    assert "host overhead: no roof explains most of the step" in html
