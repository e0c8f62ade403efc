"""The node is measured once, before the first launch; where it cannot be, the campaign goes on."""

from __future__ import annotations

import subprocess

import pytest

from lab import Lab
from sgmatrix.core.clock import parse_utc
from sgmatrix.core.files import read_json

pytestmark = pytest.mark.workflow

WITH_TORCH = "{project}/tests/standin:{project}/tests/standin_oea"

Ended = tuple[Lab, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Two cells whose engine has something like torch."""
    lab = Lab(tmp_path_factory.mktemp("node"))
    path = lab.campaign("{parallelism: [tp1, tp2]}", waves=0, concurrency="[1]")
    path.write_text(path.read_text().replace("{project}/tests/standin", WITH_TORCH))
    return lab, lab.snakemake()


def test_memory_is_measured_by_the_engines_python_and_the_caches_are_no_slower(
    ended: Ended,
) -> None:
    lab, done = ended
    assert done.returncode == 0, done.stdout

    record = read_json(lab.root / "node-probe.json")

    measured = record["measured"]
    assert 0 < measured["memory_copy_bytes_s"] <= measured["memory_cached_bytes_s"]
    ((smallest, *_), *_, (largest, *_)) = measured["memory_copies"][0]
    assert (smallest, largest) == (2**20, 2**28)
    assert record["skipped"] == {"allreduce_s": "no GPU"}
    assert (record["status"], record["engine"], record["torch"]) == ("ok", "standin", "standin")
    assert record["node"]["cores"] >= 1 and record["devices"] == ["cpu"]
    assert record["duration_s"] > 0


def test_it_is_over_before_the_first_launch_begins(ended: Ended) -> None:
    lab, _ = ended
    record = read_json(lab.root / "node-probe.json")
    over = parse_utc(record["started_at"]).timestamp() + record["duration_s"]

    asked = [
        read_json(file)["server_times"]["leased"]
        for file in lab.root.glob("cells/*/launch-1/teardown.json")
    ]

    assert len(asked) == 2 and over < min(asked)


def test_terminal_log_and_report_say_what_was_found(ended: Ended) -> None:
    lab, done = ended
    copied = read_json(lab.root / "node-probe.json")["measured"]["memory_copy_bytes_s"]
    told = f"memory copies at {copied / 1e9:.1f} GB/s"

    assert f"the node: {told}" in done.stdout
    assert told in (lab.root / "logs/node-probe.log").read_text()
    assert f"<dt>node probe</dt><dd>{told}" in (lab.root / "report/index.html").read_text()


def test_it_is_repeated_for_another_engine_that_launches_something(ended: Ended) -> None:
    lab, _ = ended
    assert "Nothing to be done" in lab.snakemake("-n").stdout
    former = read_json(lab.root / "node-probe.json")

    more = lab.folder / "more.yaml"
    text = (lab.folder / "campaign.yaml").read_text()
    more.write_text(text.replace("[tp1, tp2]", "[tp1, tp2, tp4]"))
    asked = lab.snakemake("-n", config=more).stdout
    assert "launch" in asked and "node_probe" not in asked

    more.write_text(text.replace(WITH_TORCH, "{project}/tests/standin"))
    assert "node_probe" in lab.snakemake("-n", config=more).stdout
    assert read_json(lab.root / "node-probe.json") == former
    done = lab.snakemake(config=more)

    assert done.returncode == 0, done.stdout
    record = read_json(lab.root / "node-probe.json")
    assert (record["attempt"], record["status"], record["torch"]) == (2, "failed", None)
    assert record["measured"] == {}
    why = "ModuleNotFoundError: No module named 'torch'"
    assert record["skipped"] == {"memory_copy_bytes_s": why, "allreduce_s": "no GPU"}
    assert f"memory_copy_bytes_s not measured: {why}" in done.stdout
    assert {row["status"] for row in lab.points() if row["current"]} == {"ok"}
    assert "Nothing to be done" in lab.snakemake("-n", config=more).stdout


def test_results_without_a_record_are_not_probed_when_nothing_is_launched(ended: Ended) -> None:
    lab, _ = ended
    more = lab.folder / "more.yaml"
    (lab.root / "node-probe.json").unlink()

    assert "Nothing to be done" in lab.snakemake("-n", config=more).stdout
