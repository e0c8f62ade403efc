"""A file of the history that is not what it should be is named, and left out as a whole."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders import History, campaign
from sgmatrix.core.files import read_json, write_json
from sgmatrix.core.parquet import write_parquet
from sgmatrix.dataset import history as history_module
from sgmatrix.dataset.collect import Tables, collect
from sgmatrix.dataset.history import read_attempts

LOW, HIGH = "c0001-i16-o4-random-ids", "c0002-i16-o4-random-ids"
REQUESTS_FILE = f"history/tp1/launch-1/1/points/{LOW}.requests.parquet"


@pytest.fixture
def made(tmp_path):
    made = History(tmp_path, campaign(axes={"parallelism": ["tp1", "tp2"]}))
    made.attempt("tp1")
    made.attempt("tp2")
    return made


def left_out(made):
    """What collecting names, as path and reason."""
    return [(one.path, one.why) for one in collect(made.layout, Tables.of(made.layout))]


def requests(made):
    """The cells and load points in the table of requests."""
    table = pq.read_table(Tables.of(made.layout).requests)
    return sorted({(row["cell"], row["load_id"]) for row in table.to_pylist()})


WHOLE = [("tp1", LOW), ("tp1", HIGH), ("tp2", LOW), ("tp2", HIGH)]
WITHOUT_ONE = WHOLE[1:]


def change(made, what, **metadata):
    """Write one file of requests again, changed."""
    file = made.layout.root / REQUESTS_FILE
    table = pq.read_table(file)
    schema = table.schema.metadata | {k.encode(): v.encode() for k, v in metadata.items()}
    write_parquet(what(table).replace_schema_metadata(schema), file)


def test_of_a_whole_history_nothing_is_left_out(made):
    assert left_out(made) == []
    assert requests(made) == WHOLE
    assert read_json(made.layout.left_out) == {"left_out": []}


@pytest.mark.parametrize("keep", [0, 4, 100, -9])
def test_truncated_requests_are_named_and_left_out_whole(made, keep):
    file = made.layout.root / REQUESTS_FILE
    file.write_bytes(file.read_bytes()[:keep])
    ((path, why),) = left_out(made)

    assert path == REQUESTS_FILE
    assert why.startswith("is no whole Parquet file: ")
    assert requests(made) == WITHOUT_ONE
    assert read_json(made.layout.left_out) == {"left_out": [{"path": path, "why": why}]}


def renamed(table):
    return table.rename_columns([n.replace("ttft_ms", "ttft") for n in table.column_names])


def retyped(table):
    place = table.schema.get_field_index("ttft_ms")
    return table.set_column(place, "ttft_ms", table["ttft_ms"].cast(pa.float32()))


def of_cell(cell):
    def change(table):
        column = pa.array([cell] * table.num_rows, pa.string())
        return table.set_column(table.schema.get_field_index("cell"), "cell", column)

    return change


def last_one_of_another(table):
    column = pa.array(["tp1"] * (table.num_rows - 1) + ["tp2"], pa.string())
    return table.set_column(table.schema.get_field_index("cell"), "cell", column)


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (renamed, "lacks the column ttft_ms of requests/1"),
        (retyped, "has ttft_ms as float, in requests/1 it is double"),
        (lambda t: t.append_column("x", t["ok"]), "has the column x, which requests/1"),
        (of_cell("tp2"), "is of cell tp2, not tp1: a copy"),
        (last_one_of_another, "is of cell tp2, not tp1: a copy"),
        (lambda t: pa.concat_tables([t, t]), "has the same request twice"),
    ],
)
def test_requests_of_another_form_or_of_another_attempt_are_left_out(made, what, why):
    change(made, what)
    ((path, found),) = left_out(made)

    assert path == REQUESTS_FILE
    assert found.startswith(why)
    assert requests(made) == WITHOUT_ONE


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("requests/2", "holds requests/2, newer than the requests/1 known here"),
        ("telemetry/1", "holds telemetry/1, not requests"),
        ("", "holds no dataset of ours, not requests"),
    ],
)
def test_requests_that_say_to_be_something_else_are_left_out(made, schema, why):
    change(made, lambda table: table, **{"sgmatrix.schema": schema})

    assert left_out(made) == [(REQUESTS_FILE, why)]
    assert requests(made) == WITHOUT_ONE


@pytest.mark.parametrize(
    ("name", "value"),
    [("cell", None), ("launch", "2"), ("attempt", 7), ("campaign", "other")],
)
def test_a_folder_whose_spec_is_of_something_else_is_no_attempt(made, name, value):
    folder = made.layout.attempt("tp1", "1", 1)
    spec = read_json(folder / "spec.json")
    spec |= {"cell": {**spec["cell"], "id": "tp9"}} if name == "cell" else {name: value}
    write_json(folder / "spec.json", spec)
    own = {"cell": "tp1", "launch": "1", "attempt": 1, "campaign": "made-up"}[name]

    assert left_out(made) == [
        (
            "history/tp1/launch-1/1",
            f"is a copy: its spec.json is of {name} {value or 'tp9'}, not {own}",
        )
    ]
    assert requests(made) == WHOLE[2:]


@pytest.mark.parametrize("name", ["2", "01", "1.bak", "1 (copy)"])
def test_an_attempt_that_was_copied_beside_itself_counts_once(made, name):
    folder = made.layout.attempt("tp1", "1", 1)
    shutil.copytree(folder, folder.with_name(name))
    ((path, why),) = left_out(made)

    assert path == f"history/tp1/launch-1/{name}"
    assert why.startswith("is a copy: " if name == "2" else "is no attempt: ")
    points = pq.read_table(Tables.of(made.layout).points).to_pylist()
    assert [(row["cell"], row["attempt"]) for row in points] == [("tp1", 1)] * 2 + [("tp2", 1)] * 2


def test_a_launch_that_was_copied_beside_itself_counts_once(made):
    folder = made.layout.attempts("tp1", "1")
    shutil.copytree(folder, folder.with_name("launch-1 (copy)"))

    ((path, why),) = left_out(made)
    assert path == "history/tp1/launch-1 (copy)/1"
    assert why == "is a copy: its spec.json is of launch 1, not 1 (copy)"


def test_a_truncated_record_of_a_point_is_a_point_that_did_not_run(made):
    file = made.layout.attempt("tp1", "1", 1) / "points" / f"{LOW}.json"
    file.write_text(file.read_text()[:50])
    ((path, why),) = left_out(made)

    assert path == f"history/tp1/launch-1/1/points/{LOW}.json"
    assert why.startswith("is no whole JSON: ")
    assert requests(made) == WITHOUT_ONE
    first = pq.read_table(Tables.of(made.layout).points).to_pylist()[0]
    assert (first["status"], first["output_tok_s"]) == ("not_run", None)


def test_a_record_of_another_point_is_not_taken_for_this_one(made):
    points = made.layout.attempt("tp1", "1", 1) / "points"
    shutil.copy(points / f"{HIGH}.json", points / f"{LOW}.json")

    assert left_out(made) == [
        (f"history/tp1/launch-1/1/points/{LOW}.json", f"is of load_id {HIGH}, not {LOW}: a copy")
    ]


@pytest.mark.parametrize("name", ["teardown.json", "server.json"])
def test_a_truncated_record_of_a_launch_is_named(made, name):
    file = made.layout.attempt("tp1", "1", 1) / name
    file.write_text('{"status": "o')
    ((path, why),) = left_out(made)

    assert path == f"history/tp1/launch-1/1/{name}"
    assert why.startswith("is no whole JSON: ")
    (first, _) = read_attempts(made.layout)
    assert first.current == (name == "server.json")


def test_a_truncated_spec_leaves_out_the_attempt(made):
    file = made.layout.attempt("tp1", "1", 1) / "spec.json"
    file.write_text('{"campaign": "made')
    ((path, why),) = left_out(made)

    assert (path, why[:40]) == (
        "history/tp1/launch-1/1",
        "has a spec.json that is no whole JSON: U",
    )
    assert requests(made) == WHOLE[2:]


def test_telemetry_of_a_newer_version_stays_and_is_left_out(made):
    assert left_out(made) == []
    file = made.layout.attempt("tp1", "1", 1) / "telemetry.parquet"
    table = pq.read_table(file)
    metadata = {**table.schema.metadata, b"sgmatrix.schema": b"telemetry/9"}
    write_parquet(table.replace_schema_metadata(metadata), file)
    kept = file.read_bytes()

    assert left_out(made) == [
        (
            "history/tp1/launch-1/1/telemetry.parquet",
            "holds telemetry/9, newer than the telemetry/1 known here",
        )
    ]
    assert file.read_bytes() == kept


def test_each_record_is_read_once(made, monkeypatch):
    read = []
    inner = history_module.read_record

    def count(path, identity):
        read.append(path)
        return inner(path, identity)

    monkeypatch.setattr(history_module, "read_record", count)
    collect(made.layout, Tables.of(made.layout))

    assert len(read) == 2 * (3 + 2)  # spec, teardown, server and two points of both attempts
    assert len(set(read)) == len(read)


def test_what_a_killed_collect_left_half_written_is_removed(made):
    tables = Tables.of(made.layout)
    tables.points.parent.mkdir(parents=True, exist_ok=True)
    half = tables.points.parent / ".points.parquet.a1b2c3d4.tmp"
    of_another = tables.points.parent / ".ceilings.parquet.a1b2c3d4.tmp"
    for file in (half, of_another, made.layout.root / ".left-out.json.a1b2c3d4.tmp"):
        file.write_bytes(b"PAR1")

    collect(made.layout, tables)

    assert list(made.layout.root.rglob(".*.tmp")) == [of_another]
