"""What a campaign file can say, run on the stand-in: patches, environment, overrides, odd texts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from lab import PROJECT, Lab

pytestmark = pytest.mark.workflow

FLAGS_FILE = PROJECT / "tests/standin/sglang/standin_flags.py"

VARIED = r"""
patches:
  late:
    about: the first token comes 40 ms after admission
    edits:
      - file: sglang/standin_flags.py
        find: '"--standin-ttft-ms": {"type": float, "default": 5.0'
        replace: '"--standin-ttft-ms": {"type": float, "default": 40.0'
environments:
  slow: {STANDIN_ARGS: "--standin-ttft-ms 60"}
overrides:
  - where: {max_running_requests: 3}
    launches: 2
    load: {concurrency: [3], output_len: 2}
"""


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lab, subprocess.CompletedProcess]:
    lab = Lab(tmp_path_factory.mktemp("varied"))
    lab.campaign(
        "{patches: [null, late], environment: [null, slow], max_running_requests: [null, 3], "
        'STANDIN_ARGS: [null, "--standin-ttft-ms 80"]}',
        waves=0,
        concurrency="[1]",
        extra=VARIED,
    )
    before = FLAGS_FILE.read_bytes(), FLAGS_FILE.stat().st_mtime_ns
    run = lab.snakemake()
    assert run.returncode == 0, run.stdout
    assert (FLAGS_FILE.read_bytes(), FLAGS_FILE.stat().st_mtime_ns) == before
    return lab, run


def test_a_patch_and_variables_reach_the_server(varied) -> None:
    lab, _ = varied
    ttft = {row["cell"]: row["ttft_ms_p50"] for row in lab.points() if row["concurrency"] == 1}

    assert ttft.keys() == {"base", "late", "slow", "STANDIN-ARGS-standin-ttft-ms-80"}
    # lower bounds that the stand-in itself keeps; without its change it answers after 5 ms
    assert ttft["late"] >= 40
    assert ttft["slow"] >= 60
    assert ttft["STANDIN-ARGS-standin-ttft-ms-80"] >= 80


def test_a_patch_has_its_provenance_beside_the_record(varied) -> None:
    lab, _ = varied
    attempt = lab.root / "history/late/launch-1/1"
    spec = json.loads((attempt / "spec.json").read_text())

    assert (
        '+    "--standin-ttft-ms": {"type": float, "default": 40.0'
        in (attempt / "patches.diff").read_text()
    )
    assert list(spec["cell"]["patches"]) == ["late"]
    assert not (lab.root / "history/base/launch-1/1/patches.diff").exists()
    assert 'default": 40.0' in (lab.root / "cells/late/cell.yaml").read_text()


def test_an_override_changes_launches_and_load_of_its_cells_alone(varied) -> None:
    lab, _ = varied
    rows = {
        (row["cell"], row["launch"], row["concurrency"], row["output_len"]) for row in lab.points()
    }

    mine = {row[1:] for row in rows if row[0] == "max-running-requests-3"}
    assert mine == {("1", 3, 2), ("2", 3, 2)}
    assert {row[1:] for row in rows if row[0] == "base"} == {("1", 1, 4)}


def test_a_patched_cell_is_repeated_from_its_own_record_without_the_campaign(varied) -> None:
    lab, _ = varied
    before = lab.attempts()
    (lab.folder / "campaign.yaml").rename(lab.folder / "gone.yaml")

    run = lab.snakemake(config=lab.root / "cells/late/cell.yaml")
    (lab.folder / "gone.yaml").rename(lab.folder / "campaign.yaml")

    assert run.returncode == 0, run.stdout
    assert "nothing differs from the record of this cell" in run.stdout
    assert lab.attempts() == {**before, "late": ["1", "2"]}
    assert "Nothing to be done" in lab.snakemake("-n").stdout


HOSTILE = 'it\'s {fine} "x" $(touch PWNED_1) `touch PWNED_2`; touch PWNED_3 # \\ % {wildcards}'


def test_odd_texts_are_passed_on_as_they_are_and_run_nothing(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "run é \N{EN DASH} größe")
    lab.folder.mkdir()
    model = lab.folder / "GLM 5 (NVFP4) \N{EN DASH} größe; touch PWNED_4 #"
    recipe = lab.folder / "results/models/tiny-qwen3-moe"
    lab.campaign("{parallelism: [tp1]}", waves=0, concurrency="[1]")
    assert lab.snakemake("--until", "model").returncode == 0
    recipe.rename(model)
    long = "x" * 9000
    path = lab.campaign(
        json.dumps({"revision": [HOSTILE, long], "dtype": ["../../PWNED_5"]}),
        waves=0,
        concurrency="[1]",
        extra=f"environments: {{odd: {json.dumps({'ODD': HOSTILE})}}}\n",
    )
    path.write_text(
        path.read_text().replace("{recipe: tiny-qwen3-moe}", json.dumps({"path": str(model)}))
    )

    run = lab.snakemake("--cores", "8")

    assert run.returncode == 0, run.stdout
    rows = lab.points()
    assert [row["status"] for row in rows] == ["ok", "ok"]
    for row in rows:
        assert len(row["cell"]) <= 100
        assert row["cell"].isascii() and "/" not in row["cell"]
    argvs = [
        json.loads((lab.root / "history" / row["cell"] / "launch-1/1/server.json").read_text())[
            "argv"
        ]
        for row in rows
    ]
    assert {argv[argv.index("--revision") + 1] for argv in argvs} == {HOSTILE, long}
    assert {argv[argv.index("--model-path") + 1] for argv in argvs} == {str(model)}
    for place in (tmp_path, PROJECT, Path("/tmp")):
        assert not list(place.glob("PWNED*"))
    assert not list(tmp_path.rglob("PWNED_[1235]"))


def test_secrets_of_the_shell_reach_the_server_and_no_file(lab: Lab, monkeypatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_SENTINELabcdefghijk")
    monkeypatch.setenv("OPENAI_API_KEY", "SENTINEL-plain")
    lab.campaign("{parallelism: [tp1]}", waves=0, concurrency="[1]")

    run = lab.snakemake()

    assert run.returncode == 0, run.stdout
    assert "SENTINEL" not in run.stdout
    holding = [
        path
        for path in lab.folder.rglob("*")
        if path.is_file() and b"SENTINEL" in path.read_bytes()
    ]
    assert holding == []


def test_all_mistakes_of_a_campaign_are_named_before_anything_starts(lab: Lab) -> None:
    path = lab.campaign("{parallelism: [tp1, tp3, tp0], mem_fraction: [85], oea: [on]}")
    path.write_text(path.read_text().replace("\ndesign: one_at_a_time", ""))

    run = lab.snakemake()

    assert run.returncode == 1
    for told in (
        "axes.parallelism: 'tp0' is not a bundle",
        (
            "mem_fraction = 85, allowed 0 < value < 1; fix: it is a share of the memory, not a "
            "percentage; write 0.85"
        ),
        "fix: write off, or a mapping such as {k0: 4}",
    ):
        assert told in run.stdout
    assert not lab.root.exists()


@pytest.mark.parametrize("nested", ["axes={oea: [off]}", "launches=2", "campaign=other"])
def test_a_campaign_is_no_matter_of_the_command_line(lab: Lab, nested: str) -> None:
    lab.campaign("{parallelism: [tp1]}")

    run = lab.snakemake("-n", "--config", nested)

    assert run.returncode == 1
    assert "config_rejected: --config" in run.stdout
    assert "the campaign itself is a file" in run.stdout
    assert "Traceback" not in run.stdout
