"""Lines in a file that may be full, gone, or half written."""

import json
import os
import shutil

import pytest

from sgmatrix.node.telemetry.sink import Sink


@pytest.fixture
def path(tmp_path):
    (tmp_path / "run").mkdir()
    return tmp_path / "run" / "telemetry.jsonl"


def test_each_record_is_a_line_after_those_that_are_there(path):
    path.write_text('{"t":1}\n')
    sink = Sink(str(path))

    assert sink.write({"t": 2}) and sink.write({"t": 3})
    assert path.read_text() == '{"t":1}\n{"t":2}\n{"t":3}\n'
    assert sink.lost == 0


def test_a_full_disk_costs_lines_and_they_are_counted(tmp_path):
    path = tmp_path / "telemetry.jsonl"
    path.symlink_to("/dev/full")
    sink = Sink(str(path))

    assert not sink.write({"t": 1})
    assert not sink.write({"t": 2})
    assert sink.lost == 2
    path.unlink()
    assert sink.write({"t": 3, "lost": sink.lost})
    assert path.read_text() == '{"t":3,"lost":2}\n'


def test_a_removed_folder_costs_lines_until_it_is_back(path):
    sink = Sink(str(path))
    sink.write({"t": 1})
    shutil.rmtree(path.parent)

    assert not sink.write({"t": 2})
    assert not path.parent.exists()
    path.parent.mkdir()
    assert sink.write({"t": 3})
    assert (path.read_text(), sink.lost) == ('{"t":3}\n', 1)


def test_half_a_line_is_lost_alone(path, monkeypatch):
    sink = Sink(str(path))
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:4]))
    assert not sink.write({"t": 1})
    monkeypatch.undo()

    assert sink.write({"t": 2})
    assert path.read_text() == '{"t"\n{"t":2}\n'
    assert sink.lost == 1


def test_half_a_line_of_an_earlier_sampler_is_left_alone(path):
    path.write_text('{"t":1}\n{"t":')
    Sink(str(path)).write({"t": 2})

    assert path.read_text() == '{"t":1}\n{"t":\n{"t":2}\n'


def test_a_number_that_is_none_is_refused(path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        Sink(str(path)).write({"t": float("nan")})


def test_lines_are_strict_json(path):
    Sink(str(path)).write({"name": 'a "b"\n', "list": [1, None]})

    assert json.loads(path.read_text()) == {"name": 'a "b"\n', "list": [1, None]}
    assert path.read_text().count("\n") == 1
