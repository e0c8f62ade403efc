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
            "tp1-ds1-mf0.02",
            "tp2-ds1-mf0.02",
            "tp1-ds4-mf0.02",
            "tp1-ds1-mf0.01",
            "tp1-ds1-mf0.04",
        )
        for concurrency in (1, 2, 8)
    ]
    for row in rows:
        assert (row["status"], row["failed"]) == ("ok", 0), row
        assert row["completed"] == row["asked"] == max(8, 4 * row["concurrency"])
        assert row["engine_version"] == "0.5.23"


def test_every_request_gave_the_tokens_that_were_asked(results: Path) -> None:
    requests = pq.read_table(results / "demo/datasets/requests.parquet")
    assert requests.num_rows == 5 * (8 + 8 + 32)
    assert set(requests["output_tokens"].to_pylist()) == {64}
    assert min(requests["ttft_ms"].to_pylist()) > 0


def test_the_kv_pools_really_differ(results: Path) -> None:
    tokens = {}
    for share in ("0.01", "0.02", "0.04"):
        path = results / f"demo/cells/tp1-ds1-mf{share}/launch-1/teardown.json"
        tokens[share] = json.loads(path.read_text())["info"]["max_total_num_tokens"]
    assert 0 < tokens["0.01"] < tokens["0.02"] < tokens["0.04"]


def test_mlflow_has_one_finished_run_per_launch(results: Path) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{(results / 'mlflow.db').resolve()}")
    (experiment,) = [e for e in client.search_experiments() if e.name == "sglang-matrix/demo"]
    runs = client.search_runs([experiment.experiment_id], "tags.`bench.kind` = 'cell'")
    assert sorted(run.info.run_name for run in runs) == [
        "tp1-ds1-mf0.01",
        "tp1-ds1-mf0.02",
        "tp1-ds1-mf0.04",
        "tp1-ds4-mf0.02",
        "tp2-ds1-mf0.02",
    ]
    assert {run.info.status for run in runs} == {"FINISHED"}
