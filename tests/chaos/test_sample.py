"""A fixed sample of the chaos suite, and what the suite itself must be able to see."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from chaos.checks import no_lease_left, nothing_half_written
from chaos.run import run_scenario
from chaos.scenario import SIGNALS, TARGETS, draw
from chaos.world import World
from lab import Lab

# A killed Snakemake, warden and client, a server that is interrupted, a suspended job, a full
# disk, a stolen port, a server that dies by itself, a launch that ran as one group.
SAMPLE = [(7, "default"), (57, "default"), (25, "default"), (18, "default"), (29, "default"),
          (22, "default"), (23, "default"), (24, "default"), (2907, "gpu-node")]  # fmt: skip


@pytest.mark.workflow
@pytest.mark.parametrize(("seed", "profile"), SAMPLE, ids=str)
def test_a_campaign_survives(seed: int, profile: str) -> None:
    outcome = run_scenario(draw(seed, profile))

    assert outcome.violations == [], "\n".join(outcome.log)
    # only root may mount a disk, and a thief may come too late for a port
    assert outcome.made or outcome.scenario.kind in ("disk", "port")


def test_the_seeds_reach_every_kind_of_fault() -> None:
    drawn = [draw(seed) for seed in range(1, 201)]

    assert {one.kind for one in drawn} == {"signal", "server", "port", "disk"}
    pairs = Counter((one.signal, one.target) for one in drawn if one.kind == "signal")
    assert len(pairs) >= len(SIGNALS) * len(TARGETS) - 4
    assert draw(5) == draw(5)


def test_the_checks_see_what_they_look_for(tmp_path) -> None:
    world = World(Lab(tmp_path), draw(1))
    points = world.lab.root / "history/tp1/launch-1/1/points"
    points.mkdir(parents=True)
    (points / "whole.json").write_text(json.dumps({"status": "ok"}))
    (points / "half.json").write_text('{"status": ')
    (points / "half.parquet").write_bytes(b"PAR1")
    (tmp_path / "leases").mkdir()
    (tmp_path / "leases/cpu.lock").touch()

    found = list(nothing_half_written(world))

    assert sorted(line.partition(" ")[0].rpartition("/")[2] for line in found) == [
        *("half.json", "half.parquet")
    ]
    assert list(no_lease_left(world)) == []
