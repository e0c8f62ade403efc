"""What is done again, and what is not."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from lab import PROJECT, Lab

pytestmark = pytest.mark.workflow


FAILED = "tp1-standin-fault-die-before-ready"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    lab = Lab(tmp_path_factory.mktemp("rerun"))
    lab.campaign(
        '{parallelism: [tp1, tp2], standin_fault: [null, "die_before_ready"]}',
        waves=0,
        concurrency="[1]",
    )
    run = lab.snakemake("--cores", "1")
    assert run.returncode == 0, run.stdout
    return lab


def launched(output: str) -> list[str]:
    """Return the cells that a dry run would launch."""
    return re.findall(r"^ *Job \d+: Launch (\S+), launch 1$", output, re.MULTILINE)


def dry_run(lab: Lab, config: Path | None = None) -> str:
    return lab.snakemake("-n", "--quiet", "host", config=config).stdout


def test_a_comment_other_order_and_touched_scripts_repeat_nothing(done: Lab) -> None:
    path = done.folder / "campaign.yaml"
    lines = path.read_text().splitlines()
    other = done.folder / "other.yaml"
    axes = next(line for line in lines if line.startswith("axes:"))
    rest = [line for line in lines if line != axes]
    other.write_text("# a comment\n" + axes + "\n" + "\n".join(rest) + "\n")
    os.utime(PROJECT / "workflow/scripts/benchmark.py")
    assert "Nothing to be done" in dry_run(done, other)


def test_an_added_cell_is_the_only_one_that_runs(done: Lab) -> None:
    path = done.folder / "campaign.yaml"
    more = done.folder / "more.yaml"
    more.write_text(path.read_text().replace("[tp1, tp2]", "[tp1, tp2, tp4]"))
    assert launched(dry_run(done, more)) == ["tp4"]


def test_another_value_in_the_key_repeats_that_cell_alone(done: Lab) -> None:
    path = done.folder / "campaign.yaml"
    other = done.folder / "key.yaml"
    other.write_text(path.read_text().replace("standin_ready_ms: 20", "standin_ready_ms: 21"))
    # the flag of the engine is in every cell
    assert sorted(launched(dry_run(done, other))) == ["tp1", FAILED, "tp2"]


def test_failed_launches_are_repeated_on_demand_only(done: Lab) -> None:
    assert "Nothing to be done" in dry_run(done)
    output = done.snakemake("-n", "--quiet", "host", "--config", "retry=failed").stdout
    assert launched(output) == [FAILED]


def test_an_added_load_point_is_measured_in_an_extra_launch_of_its_own(done: Lab) -> None:
    more = done.folder / "load.yaml"
    more.write_text(
        (done.folder / "campaign.yaml")
        .read_text()
        .replace("concurrency: [1]", "concurrency: [1, 2]")
    )
    output = dry_run(done, more)
    found = re.findall(r"Job \d+: Launch (\S+), launch (\S+)$", output, re.MULTILINE)
    assert sorted(found) == [("tp1", "1-extra1"), (FAILED, "1-extra1"), ("tp2", "1-extra1")]
    assert re.findall(r"Measure tp1, launch \S+, at (\S+)", output) == ["c0002-i8-o4-random-ids"]


def test_one_cell_again_from_its_own_record(done: Lab) -> None:
    cell = done.root / "cells/tp2/cell.yaml"
    before = done.attempts()

    run = done.snakemake(config=cell)

    assert run.returncode == 0, run.stdout
    assert done.attempts() == {**before, "tp2": ["1", "2"]}
    rows = {(row["cell"], row["attempt"]): row for row in done.points()}
    assert len(rows) == 4
    assert not rows["tp2", 1]["current"] and rows["tp2", 2]["current"]
    same = ("cell_key", "point_key", "seed", "asked", "harness")
    assert [rows["tp2", 1][k] for k in same] == [rows["tp2", 2][k] for k in same]
    assert rows["tp1", 1]["current"]

    assert "nothing differs from the record of this cell" in run.stdout
    assert "agreement of tp2, launch 1, with before:" in run.stdout

    again = done.snakemake(config=cell)

    assert again.returncode == 0, again.stdout
    stored = json.loads((done.root / "cells/tp2/launch-1/agreement.json").read_text())
    assert stored["attempts"] == {"old": 2, "new": 3}
    assert {one["starts"] for one in stored["points"]} == {2}
    assert done.attempts() == {**before, "tp2": ["1", "2", "3"]}
    assert "Nothing to be done" in dry_run(done)
    assert {row["cell"] for row in done.points() if row["current"]} == {"tp1", FAILED, "tp2"}


def test_strict_stops_where_something_differs_from_the_record(done: Lab) -> None:
    path = done.folder / "elsewhere.yaml"
    text = (done.root / "cells/tp1/cell.yaml").read_text()
    path.write_text(re.sub(r"kernel: .*", "kernel: 4.4.0-old", text))

    run = done.snakemake("--config", "strict=true", config=path)

    assert run.returncode == 1
    assert f"not_the_same: node.kernel: 4.4.0-old then, {os.uname().release} now" in run.stdout
    assert done.attempts()["tp1"] == ["1"]


def test_without_snakemakes_own_records_ours_decide(done: Lab) -> None:
    shutil.move(done.folder / ".snakemake", done.folder / "elsewhere")
    try:
        assert "Nothing to be done" in dry_run(done)
        other = done.folder / "other-load.yaml"
        text = (done.folder / "campaign.yaml").read_text()
        other.write_text(text.replace("\nload:\n", "\nload:\n  seed: 2\n"))
        before = done.attempts()
        done.snakemake("plan", config=other)
        assert (done.root / "report/index.html").exists()  # looking at a plan withdraws nothing

        run = done.snakemake(config=other)

        assert run.returncode == 0, run.stdout
        after = done.attempts()
        assert all(len(after[cell]) == len(before[cell]) + 1 for cell in before)
    finally:
        shutil.rmtree(done.folder / ".snakemake")
        shutil.move(done.folder / "elsewhere", done.folder / ".snakemake")
