"""Files of older versions are read with nulls; what is newer or of another form is refused."""

import pyarrow as pa
import pytest

from sgmatrix.core import schema_versions
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.parquet import table_from_rows, write_parquet
from sgmatrix.core.schema_versions import ADDED, CURRENT, NewerTable, read_dataset, schema_of
from sgmatrix.core.schemas import REQUESTS, TELEMETRY, points_schema, with_metadata

IDENTITY = {"campaign": "c", "cell": "tp1", "launch": "1", "attempt": 1, "load_id": "c1"}
POINT = {
    **IDENTITY,
    "study": "s",
    "cell_key": "k",
    "point_key": "p",
    "current": True,
    "status": "ok",
    "input_len": 16,
    "output_len": 4,
    "dataset": "random-ids",
    "engine": "e",
    "concurrency": 8,
    "output_tok_s": 64.5,
    "seed": 7,
    "axis_oea": "on",
}


def older(dataset, version, wanted):
    """The schema of a dataset as that version had it."""
    later = {name for number, names in ADDED[dataset].items() if number > version for name in names}
    fields = [f for f in wanted if f.name not in later]
    return with_metadata(pa.schema(fields), dataset, version, {"campaign": "c"})


@pytest.mark.parametrize("version", [1, 2])
def test_points_of_an_older_version_have_nulls_for_what_came_later(tmp_path, version):
    schema = older("points", version, points_schema(["oea"]))
    write_parquet(table_from_rows([POINT], schema), tmp_path / "points.parquet")

    table = read_dataset(tmp_path / "points.parquet", "points")
    (row,) = table.to_pylist()
    assert table.schema.equals(points_schema(["oea"]), check_metadata=False)
    assert {name: row[name] for name in POINT} == POINT
    assert (row["hard_ratio"], row["ceiling_kv_tokens"]) == (None, None)
    assert "hard_ratio" not in schema.names
    assert ("slo" in schema.names) == (version == 2)


@pytest.mark.parametrize(("dataset", "wanted"), [("requests", REQUESTS), ("telemetry", TELEMETRY)])
def test_files_of_the_history_gain_a_column_with_the_next_version(
    tmp_path, monkeypatch, dataset, wanted
):
    """The version of today, read by a version that knows one column more."""
    schema = with_metadata(wanted, dataset, 1, {})
    required = {pa.string(): "x", pa.float64(): 1.5, pa.int32(): 1, pa.bool_(): True}
    row = {f.name: required.get(f.type, 1_790_000_000_000_000) for f in schema if not f.nullable}
    write_parquet(table_from_rows([row], schema), tmp_path / "old.parquet")
    more = wanted.append(pa.field("cached_tokens", pa.int32()))
    monkeypatch.setattr(schema_versions, "schema_of", lambda name, axes=(): more)
    monkeypatch.setitem(CURRENT, dataset, 2)
    monkeypatch.setattr(schema_versions, "ADDED", {dataset: {2: ("cached_tokens",)}})

    table = read_dataset(tmp_path / "old.parquet", dataset)
    assert table.schema.field("cached_tokens").type == pa.int32()
    assert table.to_pylist()[0]["cached_tokens"] is None
    assert table.num_rows == 1


def test_a_newer_version_is_refused_by_name(tmp_path):
    file = tmp_path / "points.parquet"
    schema = with_metadata(points_schema([]), "points", 4, {})
    point = {name: value for name, value in POINT.items() if name != "axis_oea"}
    write_parquet(table_from_rows([point], schema), file)

    with pytest.raises(NewerTable) as caught:
        read_dataset(file, "points")
    assert str(caught.value) == (
        f"table_unreadable: {file} holds points/4, newer than the points/3 known here; "
        "fix: read it with the sglang-matrix that wrote it, or a newer one"
    )


def test_an_older_version_that_has_a_later_column_is_not_half_read(tmp_path):
    schema = older("points", 2, points_schema([])).append(points_schema([]).field("hard_ratio"))
    schema = with_metadata(schema, "points", 2, {})
    write_parquet(table_from_rows([], schema), tmp_path / "points.parquet")

    with pytest.raises(SgmatrixError, match="has the column hard_ratio, which points/2 does not"):
        read_dataset(tmp_path / "points.parquet", "points")


def test_a_file_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(SgmatrixError) as caught:
        read_dataset(tmp_path / "points.parquet", "points")
    assert "points.parquet is no whole Parquet file: " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dataset", CURRENT)
def test_the_columns_that_versions_added_are_columns_of_today(dataset):
    names = schema_of(dataset).names
    versions = ADDED.get(dataset, {})
    added = [name for number in versions for name in versions[number]]

    assert set(added) <= set(names)
    assert len(set(added)) == len(added)
    assert sorted(versions) == list(range(2, CURRENT[dataset] + 1))
    assert all(schema_of(dataset).field(name).nullable for name in added)
