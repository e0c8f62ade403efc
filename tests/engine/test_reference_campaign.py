"""The campaign of the reference on a machine without its GPUs: it plans, and cannot be launched."""

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
CAMPAIGN = "config/campaigns/glm5-nvfp4-8xrtxpro6000.yaml"

pytestmark = pytest.mark.engine


def snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("snakemake")
    return subprocess.run(
        [program, "--directory", folder, *arguments, "--configfile", PROJECT / CAMPAIGN],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> str:
    done = snakemake(tmp_path_factory.mktemp("plan"), "plan")
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_whole_matrix_is_planned_here(planned: str) -> None:
    assert "campaign glm5-nvfp4-8xrtxpro6000: 26 cells, 26 launches, 494 load points" in planned
    assert "planned only, it cannot run here: engines.sglang-cuda.python" in planned
    assert "planned only, it cannot run here: model.path = /models/GLM-5-NVFP4" in planned


@pytest.mark.parametrize(
    "piece",
    [
        "dead_flag: axis decode_steps",
        "at concurrency 256, 512, 1,024, 2,048 and 3,072 all experts are read with k0 = 4",
        "k0 = 4 can save of a decode step at the most: 7 % at 1, 12 % at 2, 26 % at 10, 19 % at 64",
        "0.85 instead of 0.92: the KV pool shrinks from 340,123 to 269,573 tokens",
        '"reduce mem-fraction-static to allow more KV cache": it has the wrong sign',
        '"compute-bound, not communication-bound": multiplying takes at most 5 %',
        "the ceiling of a single stream is 194 tok/s hard and 137 practical",
        "256 tokens in and 128 out give 3.00, so it was measured with other lengths",
        "a peak of 7,216 tok/s at concurrency 2,048 is 2.9 times what its own TPOT",
        "ledger: tp4pp2, ruled out: cell tp4pp2-",
        "to be retested: the entry names no engine version",
    ],
)
def test_a_careful_expert_would_say(planned: str, piece: str) -> None:
    assert piece in planned


def test_the_largest_headroom_is_the_layout_that_was_not_tried(tmp_path: Path) -> None:
    done = snakemake(tmp_path, "ceiling")
    assert done.returncode == 0, done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    (head,) = [i for i, line in enumerate(lines) if line[:1] == ["cell"]]
    first = lines[head + 1]
    assert first[0].startswith("dp8ep8-")
    assert float(first[1]) > 2
    assert not (tmp_path / "results").exists() or not any((tmp_path / "results").rglob("*.json"))


def test_it_is_not_launched_without_engine_and_model(tmp_path: Path) -> None:
    done = snakemake(tmp_path, "--cores", "1")
    assert done.returncode != 0
    assert "engine_missing: engines.sglang-cuda.python" in done.stdout
    assert "model.path = /models/GLM-5-NVFP4 is not there" in done.stdout
    assert "fix: run it on the machine that has them" in done.stdout
    assert not list((tmp_path / "results").rglob("plan.json"))
