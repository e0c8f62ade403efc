"""Rows to Parquet: nulls stay null, unknown columns are refused, same rows give same bytes."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgmatrix.core.parquet import table_from_rows, write_parquet
from sgmatrix.core.schemas import REQUESTS, points_schema, with_metadata

IDENTITY = {"campaign": "c", "cell": "tp1", "launch": "1", "attempt": 1, "load_id": "c1"}
OK = {
    **IDENTITY,
    "request": 0,
    "ok": True,
    "error": None,
    "input_tokens": 16,
    "requested_output_tokens": 3,
    "output_tokens": 3,
    "ttft_ms": 10.25,
    "tpot_ms": 2.125,
    "e2e_ms": 14.5,
    "itl_ms": [2.0, 2.25],
}
FAILED = {**IDENTITY, "request": 1, "ok": False, "error": "boom"}


def test_rows_come_back_as_they_were_and_a_lacking_column_is_null(tmp_path):
    write_parquet(table_from_rows([OK, FAILED], REQUESTS), tmp_path / "r.parquet")

    first, second = pq.read_table(tmp_path / "r.parquet").to_pylist()

    assert first == OK
    assert second == {**dict.fromkeys(OK), **FAILED}


def test_a_column_that_is_null_in_all_rows_keeps_its_type():
    table = table_from_rows([FAILED], REQUESTS)

    assert table.schema == REQUESTS
    assert table.column("ttft_ms").null_count == 1


def test_no_rows_give_a_table_of_the_same_schema(tmp_path):
    write_parquet(table_from_rows([], REQUESTS), tmp_path / "r.parquet")

    read = pq.read_table(tmp_path / "r.parquet")
    assert (read.num_rows, read.schema.names) == (0, REQUESTS.names)


def test_a_column_that_the_schema_does_not_know_is_refused_by_name():
    with pytest.raises(ValueError, match=r"columns \['tpot'\] are not in the schema"):
        table_from_rows([OK, {**FAILED, "tpot": 1.0}], REQUESTS)


def test_a_null_in_a_column_that_must_be_there_leaves_no_file(tmp_path):
    with pytest.raises(pa.ArrowInvalid, match="'cell' is declared non-nullable"):
        write_parquet(table_from_rows([{**OK, "cell": None}], REQUESTS), tmp_path / "r.parquet")

    assert list(tmp_path.iterdir()) == []


def test_text_where_a_number_belongs_is_refused():
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError)):
        table_from_rows([{**OK, "ttft_ms": "fast"}], REQUESTS)


def test_the_same_rows_give_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        schema = with_metadata(REQUESTS, "requests", 1, {"point_key": "k"})
        write_parquet(table_from_rows([OK, FAILED], schema), tmp_path / name)

    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_files_hold_metadata_zstd_and_dictionaries_for_text_only(tmp_path):
    schema = with_metadata(REQUESTS, "requests", 1, {"point_key": "k"})
    write_parquet(table_from_rows([OK, FAILED], schema), tmp_path / "r.parquet")

    file = pq.ParquetFile(tmp_path / "r.parquet")
    group = file.metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    with_dictionary = {name for name, c in columns.items() if "RLE_DICTIONARY" in c.encodings}
    assert file.schema_arrow.metadata[b"sgmatrix.schema"] == b"requests/1"
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert with_dictionary == {"campaign", "cell", "launch", "load_id", "error"}
    assert str(file.schema_arrow.field("cell").type) == "string"  # and not a dictionary type


def test_times_keep_their_microseconds_in_utc(tmp_path):
    when = datetime(2026, 11, 20, 10, 0, 0, 123456, tzinfo=UTC)
    schema = pa.schema([points_schema([]).field("started_at")])
    write_parquet(table_from_rows([{"started_at": when}], schema), tmp_path / "p.parquet")

    assert pq.read_table(tmp_path / "p.parquet").to_pylist() == [{"started_at": when}]


@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "ttft_ms": st.none() | st.floats(allow_nan=False),
                "output_tokens": st.none() | st.integers(-(2**31), 2**31 - 1),
                "error": st.none() | st.text(),
            },
        ),
        max_size=5,
    )
)
def test_whatever_was_measured_is_read_back_and_nothing_else(tmp_path_factory, rows):
    file = tmp_path_factory.getbasetemp() / "law.parquet"
    full = [{**IDENTITY, "request": i, "ok": True, **row} for i, row in enumerate(rows)]

    write_parquet(table_from_rows(full, REQUESTS), file)

    assert pq.read_table(file).to_pylist() == [{**dict.fromkeys(OK), **row} for row in full]
