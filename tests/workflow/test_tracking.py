"""MLflow that is down costs no result, one command makes up for it, and no secret is told."""

import json
import socket
import zlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lab import Lab

pytestmark = pytest.mark.workflow


def holding(folder: Path, word: str) -> list[Path]:
    """The files below a folder that hold a word; Parquet is read by its values."""
    found = []
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        if path.suffix == ".parquet":
            table = pq.read_table(path, partitioning=None)
            told = word in str(table.to_pylist()) or word in str(table.schema.metadata)
        else:
            data = path.read_bytes()
            told = word.encode() in data
            if data.startswith(b"\x78\x9c"):
                told = told or word.encode() in zlib.decompress(data)
        if told:
            found.append(path)
    return found


def test_a_server_that_is_down_costs_nothing_but_the_runs_and_track_replays_them(
    lab: Lab, monkeypatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "SENTINEL-of-the-hub")
    lab.campaign("{parallelism: [tp1]}", waves=0, concurrency="[1]")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and not listening
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:SENTINEL-uri-word@{where}")
        failed = lab.snakemake()
    (line,) = {one for one in failed.stdout.splitlines() if one.startswith("tracking_failed")}

    assert failed.returncode == 1
    assert f"http://{where} cannot be reached" in line and "snakemake track" in line
    assert "Traceback" not in failed.stdout
    assert (lab.root / "report/index.html").exists()
    assert [row["status"] for row in lab.points()] == ["ok"]
    assert not (lab.root / "tracking.json").exists()

    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    replayed = lab.snakemake("track")
    record = lab.root / "tracking.json"
    first = record.read_bytes()
    assert replayed.returncode == 0, replayed.stdout
    assert list(json.loads(first)["runs"]) == ["small/tp1/1"]
    assert lab.attempts() == {"tp1": ["1"]}

    again = lab.snakemake("track")  # always looks, and adds nothing
    assert again.returncode == 0 and "Nothing to be done" not in again.stdout
    assert record.read_bytes() == first

    assert "SENTINEL" not in failed.stdout + replayed.stdout
    assert holding(lab.folder, "SENTINEL") == []
    assert holding(lab.folder, "small/tp1/1")  # the search finds what is there


def test_a_password_in_the_config_is_refused_before_anything_starts(lab: Lab) -> None:
    lab.campaign("{parallelism: [tp1]}")
    uri = "http://me:SENTINEL-word@127.0.0.1:1"
    run = lab.snakemake("track", "--config", f"tracking_uri={uri}")

    assert run.returncode == 1
    assert "MLFLOW_TRACKING_PASSWORD" in run.stdout and "SENTINEL" not in run.stdout
    assert not lab.root.exists()


def test_what_a_server_says_of_secrets_is_nowhere_once_it_has_ended(lab: Lab, monkeypatch) -> None:
    says = (
        "Authorization: Bearer SENTINEL-bearer\n"
        "{'api_key': 'SENTINEL-json', 'port': 1} and hf_SENTINEL1234567890\n"
        "ValueError: cannot open https://me:SENTINEL-url@models.example/x, password=SENTINEL-prose"
    )
    monkeypatch.setenv("STANDIN_SAYS", says)
    axes = '{parallelism: [tp1], standin_fault: [null, "die_before_ready"]}'
    lab.campaign(axes, waves=0, concurrency="[1]")

    done = lab.snakemake()

    assert done.returncode == 0, done.stdout
    logs = sorted((lab.root / "history").rglob("server.log"))
    assert [log.read_text().count("Authorization: ***") for log in logs] == [1, 1]
    assert "SENTINEL" not in done.stdout
    assert holding(lab.folder, "SENTINEL") == []
