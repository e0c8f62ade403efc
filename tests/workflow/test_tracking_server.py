"""A fresh MLflow server on PostgreSQL, and three campaigns that begin on it at once."""

import shutil
import subprocess
import sys

import pytest
from mlflow import MlflowClient

from builders import PROJECT, campaign
from finished import Finished
from mlflow_server import serving
from perf.tracking import POSTGRES, postgres

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(not POSTGRES.is_dir(), reason="needs Debian's PostgreSQL 15"),
]
CODE = (
    "import sys; from pathlib import Path; from sgmatrix.core.layout import Layout; "
    "from sgmatrix.present.tracking.track import track; "
    "track(Layout(Path(sys.argv[1])), sys.argv[2], Path(sys.argv[1]) / 'tracking.json')"
)


def test_campaigns_of_one_study_may_begin_at_once_on_a_fresh_server(tmp_path):
    roots = []
    for name in ("one", "two", "three"):
        history = Finished(tmp_path / name, campaign(campaign=name))
        history.measured("tp1", rates={1: 64, 2: 100})
        roots.append(history.layout.root)
    with postgres() as uri, serving(uri, artifacts=tmp_path / "artifacts") as address:
        jobs = [
            subprocess.Popen(
                [sys.executable, "-c", CODE, str(root), address],
                cwd=PROJECT / "workflow" / "scripts",
            )
            for root in roots
        ]
        assert [job.wait(120) for job in jobs] == [0, 0, 0]

        client = MlflowClient(address)
        experiment = client.get_experiment_by_name("tests").experiment_id
        runs = client.search_runs([experiment], "tags.bench.current = 'true'")
        assert {run.data.tags["bench.key"] for run in runs} == {
            "one/tp1/1",
            "two/tp1/1",
            "three/tp1/1",
        }
        for run in runs:
            assert run.info.status == "FINISHED"
            names = {one.path for one in client.list_artifacts(run.info.run_id)}
            assert names == {"argv.json", "cell.yaml", "curves.png", "points.csv", "server.log"}
        assert {run.info.artifact_uri.partition(":")[0] for run in runs} == {"mlflow-artifacts"}
    shutil.rmtree(tmp_path / "artifacts")
