"""Several campaigns, or many cores, on one node: never two servers at once."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path

import pytest

from lab import PROJECT, Lab, wait_for
from sgmatrix.node.lease import Lease, try_lease

pytestmark = pytest.mark.workflow


def lives(lab: Lab) -> list[tuple[float, float, str]]:
    """Return (started, closed, cell) of every server of a campaign."""
    found = []
    for path in lab.root.glob("history/*/launch-*/*/closed.json"):
        times = json.loads(path.read_text())["times"]
        found.append((times["started"], times["closed"], path.parts[-4]))
    return found


def assert_one_after_the_other(all_lives: list[tuple[float, float, str]]) -> None:
    ordered = sorted(all_lives)
    for (_, closed, one), (started, _, other) in itertools.pairwise(ordered):
        assert closed <= started, f"{one} was still there when {other} began"


def test_two_campaigns_that_start_at_once_run_one_after_the_other(tmp_path: Path) -> None:
    labs = [Lab(tmp_path / name, leases=tmp_path / "leases") for name in ("a", "b")]
    for lab in labs:
        lab.folder.mkdir()
        lab.campaign("{parallelism: [tp1, tp2]}", waves=0, concurrency="[1]")

    runs = [lab.start() for lab in labs]

    assert [run.wait(120) for run in runs] == [0, 0]
    both = [lives(lab) for lab in labs]
    assert [len(one) for one in both] == [2, 2]
    assert_one_after_the_other([life for one in both for life in one])
    assert [lab.processes() for lab in labs] == [[], []]


def test_a_campaign_that_waits_says_for_whom_and_since_when(lab: Lab, monkeypatch) -> None:
    monkeypatch.setenv("SGMATRIX_LEASES", str(lab.folder / "leases"))
    note = {"campaign": "other", "cell": "tp9", "pid": 41, "since": "2026-11-30T10:00:00Z"}
    waits = "waits for tp9 of campaign other, pid 41, since 2026-11-30T10:00:00Z"

    # the node is probed before the first cell, and not again before the second one
    for cells, who in (("tp1", "the probe of the node"), ("tp1, tp2", "tp2")):
        lease = try_lease(["cpu"], 1, note)
        assert isinstance(lease, Lease)
        lab.campaign(f"{{parallelism: [{cells}]}}", waves=0, concurrency="[1]")

        run = lab.start()

        told = f"{who}: {waits}"
        wait_for(lambda told=told: told in (lab.folder / "out.txt").read_text(), told)
        assert not list(lab.root.glob(f"history/{cells[-3:]}/*/*/server.log"))
        lease.release()
        assert run.wait(120) == 0


def test_many_cores_and_no_profile_start_no_second_server(lab: Lab) -> None:
    lab.campaign("{parallelism: [tp1, tp2, tp4]}", waves=0, concurrency="[1]")
    command = lab.command("--cores", "8", "--configfile", lab.folder / "campaign.yaml")
    command[command.index(str(PROJECT / "profiles/default"))] = "none"

    run = subprocess.run(
        command, env=lab.environment(), capture_output=True, text=True, timeout=200, check=False
    )

    assert run.returncode == 0, run.stderr
    assert len(lives(lab)) == 3
    assert_one_after_the_other(lives(lab))


def test_the_node_profile_runs_each_launch_as_one_group(lab: Lab) -> None:
    lab.campaign("{parallelism: [tp1, tp2]}", waves=0, concurrency="[1, 2]")
    command = lab.command("--configfile", lab.folder / "campaign.yaml")
    command[command.index(str(PROJECT / "profiles/default"))] = str(PROJECT / "profiles/gpu-node")

    run = subprocess.run(
        command,
        cwd=PROJECT,
        env=lab.environment(),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    assert [(r["cell"], r["status"]) for r in lab.points()] == [
        *([("tp1", "ok")] * 2),
        *([("tp2", "ok")] * 2),
    ]
    assert_one_after_the_other(lives(lab))


def test_forty_cells_fit_one_core(lab: Lab) -> None:
    lab.campaign(f"{{chunked_prefill_size: {list(range(1, 41))}}}")

    assert "40 cells, 40 launches, 80 load points" in lab.snakemake("plan").stdout
    assert lab.snakemake("-n", "--cores", "1").returncode == 0


def test_nothing_is_ended_by_its_name() -> None:
    for path in [PROJECT / "Makefile", *(PROJECT / "workflow").rglob("*")]:
        if path.is_file() and path.suffix != ".pyc":
            text = path.read_text(errors="replace")
            assert "pkill" not in text and "killall" not in text, path
