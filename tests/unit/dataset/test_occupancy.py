"""Where the time of a campaign went, from records and events with known times."""

import json

import pytest

from builders import campaign
from finished import ENDED, READY, Finished
from sgmatrix.core.files import read_json, write_json
from sgmatrix.dataset.history import read_attempts
from sgmatrix.dataset.occupancy import occupancy, read_events

T0 = READY["started"]


def told(tmp_path):
    return Finished(tmp_path, campaign(axes={"parallelism": ["tp1", "tp2"]}))


def event(name, seconds, cell="tp1", **more):
    return {"time_s": T0 + seconds, "event": name, "cell": cell, "launch": "1", **more}


def at(folder, **times):
    """Give a launch other times of its end, relative to T0."""
    final = read_json(folder / "teardown.json")
    final["closed"]["times"] |= {name: T0 + seconds for name, seconds in times.items()}
    final["warmup"] = {"took_s": 5.0}
    write_json(folder / "teardown.json", final)


def test_the_parts_of_a_launch_are_all_of_it(tmp_path):
    one = told(tmp_path)
    folder = one.measured("tp1", rates={1: 64, 2: 128})
    at(folder, started=0.0, ready=2.5, stopping=49.0, closed=49.25)
    loads = sum(read_json(path)["duration_s"] for path in (folder / "points").glob("*.json"))
    events = [
        event("starting", 0.0),
        event("ready", 2.5),
        event("warmup", 2.75),  # 0.25 s after it was ready, and ends 5 s later
        event("point", 8.0, load="c1"),  # 0.25 s later
        event("point", 8.0, cell="tp2"),  # of another cell
        event("point_done", 20.0, load="c1"),
        event("point", 20.5, load="c2"),
        event("point_done", 48.0, load="c2"),
        event("stopping", 49.0),
    ]
    found = occupancy(read_attempts(one.layout), events)
    (launch,) = found.launches

    assert launch.gaps_s == pytest.approx((0.25, 0.25, 0.5, 1.0))
    assert launch.seconds["start"] == pytest.approx(2.5)
    assert launch.seconds["warm-up"] == 5.0
    assert launch.seconds["load"] == pytest.approx(loads)
    assert launch.seconds["between jobs"] == pytest.approx(2.0)
    assert launch.seconds["teardown"] == pytest.approx(0.25)
    assert sum(launch.seconds.values()) == pytest.approx(launch.total_s) == pytest.approx(49.25)
    assert found.handovers_s == ()
    assert found.loaded_share == pytest.approx((5 + loads) / 49.25)


def test_handovers_are_from_proof_to_start_and_a_stop_of_the_campaign_is_none(tmp_path):
    one = told(tmp_path)
    first = one.measured("tp1", rates={1: 64})
    at(first, started=0.0, ready=2.5, stopping=10.0, closed=11.0)
    second = one.measured("tp2", rates={1: 64})
    at(second, started=11.5, ready=14.0, stopping=20.0, closed=21.0)

    found = occupancy(read_attempts(one.layout), [])
    assert found.handovers_s == pytest.approx((0.5,))
    assert found.wall_s == pytest.approx(21.0)
    assert found.launches[0].gaps_s == ()

    assert occupancy(read_attempts(one.layout), [], stretch_s=0.4).handovers_s == ()


def test_what_did_not_run_to_its_end_has_no_share(tmp_path):
    one = told(tmp_path)
    one.died("tp1", root="RuntimeError: x", rates={1: 64})
    one.rejected("tp2", root="error: unrecognized")

    found = occupancy(read_attempts(one.layout), [])
    assert found.launches == () and found.loaded_share is None
    assert ENDED["closed"] > READY["ready"]


def test_a_line_of_the_events_that_was_cut_off_is_left_out(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps(event("ready", 1.0)) + '\n{"time_s": 1.0, "ev\n[]\n{"event": 1}\n')

    assert read_events(path) == [event("ready", 1.0)]
    assert read_events(tmp_path / "none") == []
