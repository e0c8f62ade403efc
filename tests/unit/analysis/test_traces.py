"""Traces as files: whole, in pieces, and damaged."""

import gzip
import json

import pytest

from sgmatrix.analysis import traces
from sgmatrix.analysis.traces import trace_events
from sgmatrix.core.errors import SgmatrixError

EVENTS = [
    {"ph": "X", "name": f'kernel<"{n}", [{{}}]>', "ts": n, "args": {"a": [1]}} for n in range(9)
]


def write(path, text):
    path.write_bytes(gzip.compress(text.encode()))
    return path


def trace(path, events=EVENTS, **more):
    whole = {"schemaVersion": 1, "distributedInfo": {"pg": [1]}, **more, "traceEvents": events}
    return write(path, json.dumps({**whole, "traceName": "/tmp/x.json"}, indent=1))


def test_all_events_in_order(tmp_path):
    assert list(trace_events(trace(tmp_path / "a.gz"))) == EVENTS


@pytest.mark.parametrize("piece", [1, 7, 64, 200])
def test_whatever_the_pieces_it_is_read_in(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(traces, "_PIECE", piece)

    assert list(trace_events(trace(tmp_path / "a.gz", device=["x"] * 90))) == EVENTS


def test_a_trace_without_events_has_none(tmp_path):
    assert list(trace_events(trace(tmp_path / "a.gz", []))) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"schemaVersion": 1}', "it has no traceEvents"),
        ('{"traceEvents": [{"a": 1}, {"b"', "it ends within its events"),
        ('{"traceEvents": [{"a": 1}', "it ends within its events"),
        ("", "it has no traceEvents"),
    ],
)
def test_a_trace_that_is_cut_off_is_refused_with_its_place(tmp_path, text, why):
    path = write(tmp_path / "a.gz", text)

    with pytest.raises(SgmatrixError, match=why) as caught:
        list(trace_events(path))

    assert caught.value.code == "trace_damaged"
    assert str(path) in caught.value.facts


def test_a_file_that_is_cut_off_in_its_compression_is_refused(tmp_path):
    path = trace(tmp_path / "a.gz")
    path.write_bytes(path.read_bytes()[:-20])

    with pytest.raises(SgmatrixError, match="trace_damaged"):
        list(trace_events(path))


def test_no_gzip_at_all_is_refused(tmp_path):
    (tmp_path / "a.gz").write_text("{}")

    with pytest.raises(SgmatrixError, match="trace_damaged"):
        list(trace_events(tmp_path / "a.gz"))


def test_what_is_no_event_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(traces, "_PIECE", 100)
    monkeypatch.setattr(traces, "_EVENT_AT_MOST", 1000)
    path = write(tmp_path / "a.gz", '{"traceEvents": [' + "x" * 9000)

    with pytest.raises(SgmatrixError, match=r"no event in 10[0-9]{2} characters"):
        list(trace_events(path))
