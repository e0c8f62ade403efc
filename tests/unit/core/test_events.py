"""Events are lines for the eye; reporting never fails the step that reports."""

import json
import time

from sgmatrix.core.events import emit


def test_an_event_is_one_json_line_with_its_time(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1234.56789)
    emit(tmp_path / "logs" / "events.jsonl", "point", cell="tp1", load="c1")
    emit(tmp_path / "logs" / "events.jsonl", "ready")

    lines = (tmp_path / "logs" / "events.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"time_s": 1234.568, "event": "point", "cell": "tp1", "load": "c1"},
        {"time_s": 1234.568, "event": "ready"},
    ]


def test_a_path_that_cannot_be_written_is_passed_over(tmp_path):
    (tmp_path / "file").write_text("")

    emit(tmp_path / "file" / "events.jsonl", "point")

    assert (tmp_path / "file").read_text() == ""
