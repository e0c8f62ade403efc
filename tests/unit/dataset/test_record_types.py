"""A record with a value of another kind is left out by name, and the other ones are read."""

import json

import pyarrow.parquet as pq
import pytest

from builders import campaign
from finished import Finished
from sgmatrix.dataset.collect import Tables, collect
from sgmatrix.dataset.record_types import final_unfit, point_unfit

LOW, HIGH = "c0001-i16-o4-random-ids", "c0002-i16-o4-random-ids"


@pytest.fixture
def told(tmp_path):
    told = Finished(tmp_path, campaign(axes={"parallelism": ["tp1", "tp2"]}))
    for cell in told.cells:
        told.measured(cell, rates={1: 64, 2: 120})
    return told


def write(file, **values):
    """Change a record as another program would, which writes NaN too."""
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def collected(told):
    """Return what was left out, and (cell, load, status) of the current points."""
    out = collect(told.layout, Tables.of(told.layout))
    rows = pq.read_table(told.points).to_pylist()
    return [(one.path, one.why) for one in out], [
        (row["cell"], row["load_id"], row["status"]) for row in rows if row["current"]
    ]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"output_tok_s": float("nan")}, "is no whole JSON: NaN is no number"),
        ({"tpot_ms_mean": float("-inf")}, "is no whole JSON: -Infinity is no number"),
        ({"output_tok_s": "fast"}, "has output_tok_s 'fast', which is no number of its size"),
        ({"output_tok_s": True}, "has output_tok_s 'True', which is no number of its size"),
        ({"completed": 2**40}, "has completed '1099511627776', which is no number of its size"),
        ({"validity": ["cold"]}, "has validity \"['cold']\", which is no text"),
        ({"started_at": "yesterday"}, "has started_at 'yesterday', which is no time"),
        ({"client_wall_s": [1]}, "has client_wall_s '[1]', which is no number"),
    ],
)
def test_one_value_of_another_kind_leaves_one_point_out(told, values, why):
    place = f"history/tp2/launch-1/1/points/{HIGH}.json"
    write(told.layout.root / place, **values)

    out, points = collected(told)

    assert out == [(place, why)]
    assert points == [
        ("tp1", LOW, "ok"),
        ("tp1", HIGH, "ok"),
        ("tp2", LOW, "ok"),
        ("tp2", HIGH, "not_run"),
    ]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"closed": [1]}, "has closed '[1]', which is of another kind"),
        ({"server_times": {"started": "x"}}, "has server_times.started 'x', which is of another"),
        ({"finished_at": 5}, "has finished_at '5', which is of another kind"),
    ],
)
def test_a_closing_record_of_another_kind_is_none(told, values, why):
    place = "history/tp2/launch-1/1/teardown.json"
    write(told.layout.root / place, **values)

    out, points = collected(told)

    assert [path for path, _ in out] == [place] and out[0][1].startswith(why)
    assert points[2:] == [("tp2", LOW, "not_run"), ("tp2", HIGH, "not_run")]


def test_what_an_earlier_version_did_not_write_is_no_fault():
    assert point_unfit({"status": "ok", "output_tok_s": 64, "completed": 8.0}) is None
    assert final_unfit({"status": "ok"}) is None


def test_brackets_without_an_end_are_no_record(told):
    place = f"history/tp2/launch-1/1/points/{HIGH}.json"
    (told.layout.root / place).write_text("[" * 100_000)

    ((path, why),), _ = collected(told)

    assert path == place and why.startswith("is no whole JSON: maximum recursion depth")
