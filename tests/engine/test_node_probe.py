"""The scripts of the node probe on real torch: that of the CPU engine."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from lab import PROJECT
from sgmatrix.load import probe
from sgmatrix.load.node_probe import measure

pytestmark = pytest.mark.engine

PYTHON = PROJECT / ".engines/sglang-cpu/bin/python"


def test_two_processes_reduce_over_gloo() -> None:
    script = Path(probe.__file__).with_name("allreduce.py")
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [PYTHON, script, "gloo", "2", "4096,16777216", "60"]

    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)

    said = json.loads(done.stdout)
    assert said["error"] is None
    ((small, short_s), (large, long_s)) = said["allreduce_s"]["2"]
    assert (small, large) == (4096, 16777216)
    assert 0 < short_s < long_s


def test_copies_of_the_real_engine() -> None:
    asked = {
        "python": str(PYTHON),
        "env": {"PYTHONPATH": str(PROJECT / "envs/sglang-cpu/shim"), "OMP_NUM_THREADS": "1"},
        "device": "cpu",
        "groups": [],
    }

    found = measure(asked, ["cpu"])

    assert (found["status"], found["skipped"]) == ("ok", {"allreduce_s": "no GPU"})
    assert found["torch"][0].isdecimal()
    assert 1e8 < found["measured"]["memory_copy_bytes_s"] < 2e11
    assert found["measured"]["memory_cached_bytes_s"] >= found["measured"]["memory_copy_bytes_s"]
