"""A profile of the default campaign's engine: real traces of SGLang's own profiler."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[2]
CELL = "tp2-ds1-mf0.02-oea-off"

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], str]:
    """Where the campaign lies, the record of its profile, and what Snakemake said."""
    folder = tmp_path_factory.mktemp("profile")
    snakemake = Path(sys.executable).with_name("snakemake")
    run = subprocess.run(
        [snakemake, "--directory", folder, "--config", f"cell={CELL}", "--", "profile"],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    record = folder / f"results/demo/cells/{CELL}/profile/profile.json"
    return folder, json.loads(record.read_text()), run.stdout


def test_both_ranks_are_seen_in_full_decode_steps(
    profiled: tuple[Path, dict[str, Any], str],
) -> None:
    _, record, said = profiled

    assert (record["status"], record["detail"]) == ("ok", None), said
    assert [table["rank"] for table in record["tables"]] == ["TP-0", "TP-1"]
    for table in record["tables"]:
        (name, count), *rest = table["steps"].items()
        assert (name, rest) == ("DECODE bs=8", [])
        assert count in (10, 11)
        assert table["device"] == "cpu"
        assert 0 < table["busy_ms"] <= table["window_ms"]
        assert table["busy_ms"] + table["gap_ms"] == pytest.approx(table["window_ms"])
        assert sum(row["ms"] for row in table["rows"]) == pytest.approx(table["sum_ms"])


def test_the_parts_of_a_decode_step_are_told_apart(
    profiled: tuple[Path, dict[str, Any], str],
) -> None:
    _, record, said = profiled

    for table in record["tables"]:
        rows = {row["component"]: row for row in table["rows"]}
        assert {"attention", "dense", "collectives", "sampling", "elementwise"} <= set(rows)
        names = [one["name"] for one in rows["attention"]["top"]]
        assert names == ["aten::scaled_dot_product_attention"]
        # two layers, eight requests, each by itself
        steps = sum(table["steps"].values())
        assert rows["attention"]["count"] == 2 * 8 * steps
        assert rows["other"]["share"] < 0.3
    assert "https://ui.perfetto.dev opens them" in said


def test_the_traces_are_kept_and_whole(profiled: tuple[Path, dict[str, Any], str]) -> None:
    folder, record, _ = profiled

    for one in record["traces"]:
        path = folder / record["traces_in"] / one["name"]
        assert path.stat().st_size == one["bytes"]
        with gzip.open(path, "rt") as file:
            assert len(json.load(file)["traceEvents"]) > 1000
