"""A disk that is full leaves the former tables as they were; large tables come in groups."""

import resource
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from builders import PROJECT, History, campaign
from sgmatrix.core import parquet
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.collect import Tables, collect

CODE = """
import resource, sys
from pathlib import Path
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.collect import Tables, collect
layout = Layout(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    collect(layout, Tables.of(layout))
except Exception as error:
    sys.exit(f"{type(error).__name__} {error}")
"""


@pytest.fixture
def made(tmp_path):
    made = History(tmp_path, campaign())
    made.attempt("tp1")
    collect(made.layout, Tables.of(made.layout))
    return made


def files(layout: Layout):
    """Every file of the tables, hidden ones too, by its bytes."""
    found = [*layout.datasets.iterdir(), layout.left_out]
    return {file.name: file.read_bytes() for file in found}


def run(made, limit):
    command = [sys.executable, "-c", CODE, str(made.layout.root), str(limit)]
    path = {"PYTHONPATH": str(PROJECT / "workflow/scripts")}
    return subprocess.run(command, env=path, capture_output=True, text=True, check=False)


def test_a_table_that_does_not_fit_leaves_all_former_ones(made):
    before = files(made.layout)
    # many requests, in a second attempt: the points would fit, the requests do not
    file = made.attempt("tp1") / "points" / f"{made.loads[-1]}.requests.parquet"
    schema = pq.read_schema(file)
    (row, *_) = pq.read_table(file).to_pylist()
    rows = [{**row, "request": n, "ttft_ms": n**0.5, "e2e_ms": n**0.7} for n in range(20_000)]
    parquet.write_parquet(parquet.table_from_rows(rows, schema), file)
    ran = run(made, 2 * max(len(content) for content in before.values()))

    assert ran.returncode == 1
    assert ran.stderr.startswith("SgmatrixError no_room: the tables do not fit into ")
    assert "the former ones are as they were; fix: make room, then run again" in ran.stderr
    assert files(made.layout) == before


def test_with_room_again_the_tables_are_the_new_ones(made):
    before = files(made.layout)
    made.attempt("tp1")

    assert run(made, resource.RLIM_INFINITY).returncode == 0
    assert files(made.layout)["points.parquet"] != before["points.parquet"]
    assert set(files(made.layout)) == set(before)


@pytest.mark.parametrize("rows", [1, 20, 10_000])
def test_groups_of_rows_are_by_order_alone_and_the_same_again(made, monkeypatch, rows):
    monkeypatch.setattr(parquet, "GROUP_ROWS", rows)
    made.attempt("tp1")
    requests = Tables.of(made.layout).requests
    found = []
    for _ in range(2):
        collect(made.layout, Tables.of(made.layout))
        found.append(requests.read_bytes())

    assert found[0] == found[1]
    file = pq.ParquetFile(requests)
    each = 8  # requests of a load point
    groups = {1: [each] * 4, 20: [3 * each, each], 10_000: [4 * each]}[rows]
    assert [file.metadata.row_group(i).num_rows for i in range(len(groups))] == groups
    assert file.metadata.num_row_groups == len(groups)
    assert [row["request"] for row in file.read().to_pylist()] == [*range(each)] * 4
