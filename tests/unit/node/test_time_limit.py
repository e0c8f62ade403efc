"""Until when a launch may begin on a machine that is lent for a time."""

import json

import pytest

from sgmatrix.core.layout import Layout
from sgmatrix.node.time_limit import ENDS_VARIABLE, begin_by, why_too_late

CELL = {"expected_start_s": 50.0}


def ended(layout: Layout, launch: int, status: str, began: float, closed: float) -> None:
    folder = layout.attempt("a", str(launch), 1)
    folder.mkdir(parents=True)
    times = {"started": began, "closed": closed}
    (folder / "teardown.json").write_text(
        json.dumps({"status": status, "closed": {"times": times}})
    )


def test_without_a_limit_there_is_no_latest_time(tmp_path, monkeypatch):
    monkeypatch.delenv(ENDS_VARIABLE, raising=False)
    assert begin_by(Layout(tmp_path), CELL, 7) is None


def test_before_the_first_has_ended_what_is_declared_counts_then_the_longest(tmp_path, monkeypatch):
    monkeypatch.setenv(ENDS_VARIABLE, "1000.0")
    layout = Layout(tmp_path)
    assert begin_by(layout, CELL, 7) == 1000 - (50 + 7 * 4 + 12)

    ended(layout, 1, "ok", 100, 205)
    ended(layout, 2, "ok", 300, 390)
    ended(layout, 3, "failed", 400, 999)  # a deadline says nothing of a launch that works
    assert begin_by(layout, CELL, 7) == 1000 - 105


@pytest.mark.parametrize(("latest", "late"), [(None, False), (10.0, False), (9.9, True)])
def test_a_launch_is_late_only_after_its_latest_time(latest, late):
    assert (why_too_late(latest, 10.0) is not None) is late
