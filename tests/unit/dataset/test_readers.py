"""The tables as pandas, pyarrow, polars and DuckDB read them, also of several campaigns at once."""

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders import campaign
from finished import Finished
from sgmatrix.core.parquet import table_from_rows, write_parquet
from sgmatrix.core.schemas_cells import cells_schema

LOAD = {"concurrency": [1, 4], "input_len": 16, "output_len": 4}
IDS = ["001", "010", "1e3", "NA", "null", "True", "inf"]
TOOLS = ("pandas", "pyarrow", "polars", "duckdb")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two campaigns: one never measured a thing and has an axis of its own, one did."""
    folder = tmp_path_factory.mktemp("two")
    empty = campaign(campaign="a-empty", axes={"decode_steps": [1]}, load=LOAD)
    Finished(folder, empty).collect()
    full = Finished(folder, campaign(campaign="b-full", load=LOAD))
    full.measured("tp1", rates={1: 32, 4: 96})
    full.collect()
    return folder / "results"


def read(tool, results, table):
    """The rows of all campaigns by one of the tools, as its page of the docs says."""
    pattern = f"{results}/*/datasets/{table}.parquet"
    files = sorted(results.glob(f"*/datasets/{table}.parquet"))
    assert len(files) == 2
    if tool == "pandas":
        frames = [pandas.read_parquet(file, dtype_backend="pyarrow") for file in files]
        found = pa.Table.from_pandas(pandas.concat(frames), preserve_index=False)
    elif tool == "pyarrow":
        tables = [pq.read_table(file) for file in files]
        found = pa.concat_tables(tables, promote_options="default")
    elif tool == "polars":
        found = polars.concat([polars.read_parquet(file) for file in files], how="diagonal")
        found = found.to_arrow()
    else:
        found = duckdb.sql(
            f"FROM read_parquet('{pattern}', union_by_name = true) ORDER BY campaign"
        ).to_arrow_table()
    return found


@pytest.mark.parametrize("tool", TOOLS)
def test_points_of_two_campaigns_with_other_axes_are_one_table(results, tool):
    table = read(tool, results, "points")
    rows = table.to_pylist()

    names = ("campaign", "concurrency", "axis_decode_steps", "axis_parallelism", "status")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("a-empty", 1, "1", None, "not_run"),
        ("a-empty", 4, "1", None, "not_run"),
        ("b-full", 1, None, "tp1", "ok"),
        ("b-full", 4, None, "tp1", "ok"),
    ]
    rates = [row["output_tok_s"] for row in rows]
    assert rates == [None, None, pytest.approx(32), pytest.approx(96)]
    # all null in the first file, and yet a number and no text
    assert table.schema.field("output_tok_s").type == pa.float64()
    assert table.schema.field("concurrency").type == pa.int32()
    assert table.schema.field("request_rate").type == pa.float64()


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("table", ["cells", "requests", "telemetry", "experts"])
def test_every_table_of_two_campaigns_is_one(results, tool, table):
    rows = read(tool, results, table).to_pylist()

    of = [row["campaign"] for row in rows]
    assert (
        of
        == {
            "cells": ["a-empty", "b-full"],
            "requests": ["b-full"] * len(rows),
            "telemetry": [],
            "experts": [],
        }[table]
    )
    if table == "requests":
        assert len(rows) > 8
        assert rows[0]["itl_ms"] == pytest.approx([2, 2, 2])


@pytest.mark.parametrize("tool", TOOLS)
def test_ids_that_look_like_something_else_stay_text(tmp_path, tool):
    required = [f.name for f in cells_schema([]) if not f.nullable]
    rows = []
    for one in IDS:
        row = {
            name: 0 if name.startswith(("launches", "points", "attempts")) else one
            for name in required
        }
        rows.append({**row, "planned": True, "axis_env": one})
    for name in ("a", "b"):
        target = tmp_path / "results" / name / "datasets" / "cells.parquet"
        write_parquet(table_from_rows(rows, cells_schema(["env"])), target)

    table = read(tool, tmp_path / "results", "cells")
    for column in ("cell", "axis_env"):
        assert sorted(row[column] for row in table.to_pylist()) == sorted(IDS * 2)
        assert pa.types.is_string(table.schema.field(column).type) or pa.types.is_large_string(
            table.schema.field(column).type
        )


def test_a_folder_of_one_kind_is_read_as_one_by_all(results):
    """As `pandas.read_parquet(folder)` and the like, where campaigns have the same axes."""
    pattern = f"{results}/b-full/datasets/points.parquet"
    of_pandas = pandas.read_parquet(pattern)["output_tok_s"].tolist()
    of_arrow = pq.read_table(pattern)["output_tok_s"].to_pylist()
    of_polars = polars.read_parquet(pattern)["output_tok_s"].to_list()
    of_duckdb = [one for (one,) in duckdb.sql(f"SELECT output_tok_s FROM '{pattern}'").fetchall()]

    assert of_pandas == of_arrow == of_polars == of_duckdb
    assert of_arrow == [pytest.approx(32), pytest.approx(96)]


def test_the_folder_of_datasets_holds_parquet_files_alone(results):
    """Other files beside them would break a read of the folder."""
    names = {file.name for file in (results / "b-full" / "datasets").iterdir()}

    assert names == {
        f"{name}.parquet" for name in ("cells", "points", "requests", "telemetry", "experts")
    }


def test_cells_and_points_join(results):
    joined = duckdb.sql(
        f"""SELECT p.concurrency, p.output_tok_s / c.best_output_tok_s
        FROM read_parquet('{results}/*/datasets/points.parquet', union_by_name = true) p
        JOIN read_parquet('{results}/*/datasets/cells.parquet', union_by_name = true) c
        USING (campaign, cell) WHERE p.status = 'ok' ORDER BY 1"""
    ).fetchall()

    assert joined == [(1, pytest.approx(1 / 3)), (4, 1.0)]
