"""Fixtures of the workflow tests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    assert lab.processes() == []


@pytest.fixture(scope="session")
def broken(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Lab, subprocess.CompletedProcess[str]]:
    """Healthy cells, one whose flag the engine refuses, one whose server dies in the middle."""
    lab = Lab(tmp_path_factory.mktemp("broken"))
    lab.campaign(
        '{parallelism: [tp1, tp2], no_such_flag: [null, 1], standin_fault: [null, "die_after:5"]}'
    )
    return lab, lab.snakemake()
