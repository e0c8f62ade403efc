"""`snakemake profile` on the stand-in, whose traces are known by construction."""

from __future__ import annotations

import subprocess

import pytest

from lab import Lab
from sgmatrix.core.files import read_json

pytestmark = pytest.mark.workflow

Ended = tuple[Lab, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A campaign that is profiled in one of its cells before anything was measured."""
    lab = Lab(tmp_path_factory.mktemp("profile"))
    lab.campaign("{parallelism: [tp1, tp2]}", waves=0, concurrency="[1, 4]")
    done = lab.snakemake("profile", "--config", "cell=tp2")
    yield lab, done
    assert lab.processes() == []


def test_one_launch_of_that_cell_is_all_that_runs(ended: Ended) -> None:
    lab, done = ended

    assert done.returncode == 0, done.stdout
    history = sorted(str(path.relative_to(lab.root)) for path in lab.root.glob("history/*/*/*"))
    assert history == ["history/tp2/profile/1"]
    assert not (lab.root / "datasets").exists()
    assert {event["launch"] for event in lab.events()} == {"profile"}


def test_the_record_holds_what_each_rank_did(ended: Ended) -> None:
    lab, _ = ended
    record = read_json(lab.root / "cells/tp2/profile/profile.json")

    assert (record["status"], record["detail"]) == ("ok", None)
    assert (record["concurrency"], record["running"], record["steps"]) == (4, 4, 10)
    assert [table["rank"] for table in record["tables"]] == ["TP-0", "TP-1"]
    for table in record["tables"]:
        # ten steps of 1000 us, the last of which ends at 800; 600 dense, 200 attention in each
        assert table["steps"] == {"DECODE bs=4": 10}
        assert (table["device"], table["window_ms"], table["busy_ms"]) == ("cpu", 9.8, 8.0)
        assert (table["gap_ms"], table["gaps"]) == (pytest.approx(1.8), 9)
        assert [(row["component"], row["ms"]) for row in table["rows"]] == [
            ("dense", 6.0),
            ("attention", 2.0),
        ]
    folder = lab.folder / record["traces_in"]
    assert [(one["name"], one["bytes"]) for one in record["traces"]] == [
        (path.name, path.stat().st_size) for path in sorted(folder.iterdir())
    ]


def test_the_table_and_the_place_of_the_traces_are_the_last_words(ended: Ended) -> None:
    said = ended[1].stdout

    assert "profile of tp2: 4 requests at once, 8 tokens in, 40 out" in said
    assert "dense      6.000        0.600  75.0 %     10  aten::linear" in said
    assert "results/small/history/tp2/profile/1/traces: https://ui.perfetto.dev opens them" in said
    assert "to do: 2 launches" not in said  # the plan of the campaign is not asked for


def test_a_target_without_a_cell_is_refused_in_one_line_that_names_them(ended: Ended) -> None:
    done = ended[0].snakemake("profile")

    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if "config_rejected" in line]
    assert line.endswith("--config names none; fix: --config cell=<cell>, one of tp1, tp2")
    assert "Traceback" not in done.stdout


def test_a_cell_that_is_not_there_is_refused_with_the_nearest(ended: Ended) -> None:
    done = ended[0].snakemake("profile", "--config", "cell=tp3")

    assert done.returncode == 1
    assert "--config cell=tp3 is no cell of this campaign; fix: one of tp2, tp1" in done.stdout


def test_the_campaign_then_runs_without_it_and_its_report_shows_it(ended: Ended) -> None:
    lab, _ = ended
    assert "profile_cell" not in lab.snakemake("-n").stdout
    again = lab.snakemake("profile", "-n", "--config", "cell=tp2").stdout
    assert "Nothing to be done" in again

    done = lab.snakemake()

    assert done.returncode == 0, done.stdout
    assert {row["launch"] for row in lab.points()} == {"1"}
    page = (lab.root / "report/index.html").read_text()
    assert '<h2 id="profiles">Profiles</h2>' in page
    assert "<b>tp2</b>: 4 requests at once" in page
    assert "<td>6.000</td><td>0.600</td><td>75.0 %</td><td>10</td>" in page
    assert "rank TP-1: CPU busy 81.6 % of 9.80 ms; idle 1.80 ms in 9 gaps" in page


def test_a_new_profile_is_a_new_attempt_and_makes_the_report_anew(ended: Ended) -> None:
    lab, _ = ended
    options = ("--config", "cell=tp2", "steps=5")
    done = lab.snakemake("profile", *options)

    assert done.returncode == 0, done.stdout
    record = read_json(lab.root / "cells/tp2/profile/profile.json")
    assert (record["attempt"], record["tables"][0]["steps"]) == (2, {"DECODE bs=4": 5})
    asked = lab.snakemake("-n").stdout
    assert "report" in asked and "launch" not in asked


def test_a_server_that_dies_is_a_record(tmp_path_factory: pytest.TempPathFactory) -> None:
    lab = Lab(tmp_path_factory.mktemp("broken"))
    lab.campaign('{standin_fault: [null, "die_after:3"]}', waves=0, concurrency="[2]")
    plan = lab.snakemake("profile").stdout
    cell = plan.rpartition("one of ")[2].split(", ")[1].strip()

    done = lab.snakemake("profile", "--config", f"cell={cell}")

    assert done.returncode == 0, done.stdout
    record = read_json(lab.root / f"cells/{cell}/profile/profile.json")
    assert (record["status"], record["reason"]) == ("failed", "server_crash")
    assert record["tables"] == []
    assert f"profile of {cell}" in done.stdout and "failed: server_crash" in done.stdout
