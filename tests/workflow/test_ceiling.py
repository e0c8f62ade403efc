"""Ceilings along the whole workflow: refused until the node is known, then beside every point."""

from __future__ import annotations

import subprocess

import pyarrow.parquet as pq
import pytest

from lab import Lab
from sgmatrix.core.flags import is_barred

pytestmark = pytest.mark.workflow

WITH_TORCH = "{project}/tests/standin:{project}/tests/standin_oea"

Ran = tuple[Lab, subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Ask for the ceilings, then run two cells whose engine has something like torch."""
    lab = Lab(tmp_path_factory.mktemp("ceiling"))
    path = lab.campaign("{parallelism: [tp1, tp2]}", waves=9, concurrency="[1, 2]", output_len=32)
    path.write_text(path.read_text().replace("{project}/tests/standin", WITH_TORCH))
    early = lab.snakemake("ceiling")
    return lab, early, lab.snakemake()


def test_a_cpu_node_that_was_not_probed_has_none_and_says_what_to_do(ran: Ran) -> None:
    _, early, _ = ran
    assert early.returncode != 0
    assert (
        "facts_missing: the memory rate of this CPU node is not measured yet; fix: run the "
        "campaign: it probes the node before the first launch" in early.stdout
    )
    assert "Traceback" not in early.stdout


def test_every_point_stands_beside_its_ceiling(ran: Ran) -> None:
    lab, _, done = ran
    assert done.returncode == 0, done.stdout
    table = pq.read_table(lab.root / "datasets/ceilings.parquet").to_pylist()
    assert [(row["cell"], row["load_id"][:5], row["why_not"]) for row in table] == [
        (cell, load, None) for cell in ("tp1", "tp2") for load in ("c0001", "c0002")
    ]
    by_point = {(row["cell"], row["load_id"]): row for row in table}
    for row in lab.points():
        ceiling = by_point[row["cell"], row["load_id"]]
        assert row["ceiling_practical_tok_s"] == ceiling["practical_tok_s"]
        ratio = row["output_tok_s"] / ceiling["practical_tok_s"]
        assert row["practical_ratio"] == pytest.approx(ratio)
        # a rate that was measured on this node bounds nothing
        assert "implausible" not in row["validity"]


def test_the_report_tells_the_distance_and_what_lies_between(ran: Ran) -> None:
    lab, _, _ = ran
    html = (lab.root / "report/index.html").read_text()
    assert "Distance from physics" in html
    assert "Ceilings of tiny-qwen3-moe on CPU node, memory alone" in html
    assert "roofs used: memory" in html
    assert "compute" not in html[html.index("roofs used") :][:60]


def test_the_headroom_of_each_cell_is_printed_beside_what_was_measured(ran: Ran) -> None:
    lab, _, _ = ran

    def files() -> list[str]:
        return sorted(str(path) for path in lab.root.rglob("*") if "/logs/" not in str(path))

    before = files()
    asked = lab.snakemake("ceiling")
    assert asked.returncode == 0, asked.stdout
    (head,) = [line for line in asked.stdout.splitlines() if line.startswith("cell ")]
    assert head.split()[:2] == ["cell", "headroom"]
    rows = [line.split() for line in asked.stdout.splitlines() if line.startswith(("tp1", "tp2"))]
    assert [row[0] for row in rows] == ["tp2", "tp1"]  # two ranks read half each
    for row, cell in zip(rows, ("tp2", "tp1"), strict=True):
        (point,) = [p for p in lab.points() if p["cell"] == cell and p["concurrency"] == 2]
        # on a busy machine the client may have been the limit: such a number is not shown here
        barred = is_barred(point, "throughput")
        assert (f"{point['output_tok_s']:,.0f}" in row) is not barred
    # it starts nothing and writes nothing
    assert files() == before
