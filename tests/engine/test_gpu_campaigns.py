"""The campaigns for real GPUs plan on any machine, by an engine that answers for theirs."""

import re
import subprocess
from pathlib import Path

import pytest

from lab import PROJECT, Lab

pytestmark = pytest.mark.engine

CELLS = {
    "qwen3-30b-a3b-h200": {
        "ds1-mf0.80": "3",
        "ds8-mf0.80": "3",
        "ds1-mf0.60": "1",
        "ds1-mf0.80-disable-cuda-graph-on": "1",
        "ds1-mf0.80-disable-radix-cache-on": "1",
        "ds1-mf0.80-max-running-requests-128": "1",
    },
    "qwen3-30b-a3b-h200-oea": {
        "oea-off": "3",
        "oea4-mask-padding": "3",
        "oea3-mask-padding": "3",
        "oea8-mask-padding": "3",
    },
    "qwen3-30b-a3b-2xh200": {
        "tp1-no-multicast": "1",
        "tp2-no-multicast": "1",
        "tp2ep2-no-multicast": "1",
        "pp2-no-multicast": "1",
        "dp2-no-multicast": "1",
    },
}


def planned(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return Lab(folder).snakemake("plan", config=PROJECT / f"config/campaigns/{name}.yaml")


@pytest.mark.parametrize("name", sorted(CELLS))
def test_a_campaign_plans_where_its_gpus_are_not(name: str, tmp_path: Path) -> None:
    done = planned(name, tmp_path)
    rows = dict(re.findall(r"^(\S+) +[12] +(\d) +\d+  to do$", done.stdout, re.MULTILINE))

    assert done.returncode == 0, done.stdout
    assert rows == CELLS[name]
    assert "planned only, it cannot run here: engines.sglang-cuda.python" in done.stdout
    assert list(tmp_path.rglob("*.json")) == [], "a plan writes nothing"


def test_the_flag_that_nothing_reads_is_told(tmp_path: Path) -> None:
    said = planned("qwen3-30b-a3b-h200", tmp_path).stdout
    assert "dead_flag: axis decode_steps: sglang" in said
