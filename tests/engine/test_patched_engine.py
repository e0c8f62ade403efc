"""A patch as an axis value on the real SGLang: the copy runs, the installation is as it was."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

PROJECT = Path(__file__).resolve().parents[2]
FILE = "sglang/srt/entrypoints/http_server.py"
ORIGINAL = "The server is fired up and ready to roll!"

pytestmark = pytest.mark.engine


def test_a_patched_engine_is_measured_and_the_installation_left_alone(tmp_path, monkeypatch):
    (installed,) = (PROJECT / ".engines/sglang-cpu/lib").glob(f"python3*/site-packages/{FILE}")
    before = installed.read_bytes(), installed.stat().st_mtime_ns
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    campaign = yaml.safe_load((PROJECT / "config/config.yaml").read_text())
    edit = {"file": FILE, "find": ORIGINAL, "replace": "The patched server is ready to roll!"}
    campaign |= {
        "campaign": "patched",
        "axes": {"mem_fraction": [0.02], "patches": ["marked"]},
        "patches": {"marked": {"about": "says that it is patched", "edits": [edit]}},
    }
    campaign["load"] |= {"concurrency": [1], "requests": {"min": 2, "per_concurrency": 1}}
    (tmp_path / "campaign.yaml").write_text(yaml.safe_dump(campaign))

    run = subprocess.run(
        [
            Path(sys.executable).with_name("snakemake"),
            *("--directory", tmp_path, "--configfile", tmp_path / "campaign.yaml"),
        ],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )

    assert run.returncode == 0, run.stdout
    root = tmp_path / "results/patched"
    (row,) = pq.read_table(root / "datasets/points.parquet").to_pylist()
    assert (row["cell"], row["status"], row["completed"]) == ("mf0.02-marked", "ok", 2)
    log = (root / "history/mf0.02-marked/launch-1/1/server.log").read_text()
    assert "The patched server is ready to roll!" in log
    assert ORIGINAL not in log
    assert (installed.read_bytes(), installed.stat().st_mtime_ns) == before
