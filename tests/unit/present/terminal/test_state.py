"""What is said of each event, and what is known after it."""

import pytest

from sgmatrix.present.terminal.cells import Best, offered
from told_events import LOADS, event, point


def test_a_launch_is_told_from_its_start_to_its_end(state):
    assert state.apply(event("starting", attempt=3)) == []
    assert (state.cells["tp1"].status, state.phase) == ("running", "tp1 starts its server")
    assert state.apply(event("ready", time_s=1002.5)) == ["tp1: ready after 2.5 s"]
    state.apply(event("point", load=LOADS[0], time_s=1004.0))
    (running,) = state.running.values()
    assert (running.who, running.phase) == ("tp1", f"is measured at {LOADS[0]}")
    assert (running.since_s, running.attempt) == (1004.0, 3)
    assert state.apply(point(LOADS[0], 1234.4)) == [
        f"tp1: {LOADS[0]}  1,234 tok/s  TPOT 2.00 ms  valid"
    ]
    assert state.apply(event("launch_done", status="ok", reason=None)) == ["tp1: done"]
    cell = state.cells["tp1"]
    assert (cell.status, cell.points_done, state.running) == ("ok", 2, {})
    assert cell.best == Best("1", 1234.4, 2.0, "")


def test_the_best_is_the_mean_over_launches_and_a_barred_point_only_without_another(state_of):
    state = state_of("tp1", launches=2)
    state.apply(point(LOADS[0], 100.0))
    state.apply(point(LOADS[0], 110.0, 4.0, launch="2"))
    state.apply(point(LOADS[1], 900.0, validity="throttled"))

    assert state.cells["tp1"].best == Best("1", 105.0, 3.0, "")

    state.apply(point(LOADS[0], 1.0, validity="cold"))
    state.apply(point(LOADS[0], 1.0, validity="cold", launch="2"))

    assert state.cells["tp1"].best == Best("2", 900.0, 2.0, "throttled")


def test_a_launch_that_begins_again_forgets_its_former_attempt(state):
    state.apply(point(LOADS[0], 100.0))
    state.apply(event("launch_done", status="failed", reason="server_crash"))
    assert (state.cells["tp1"].status, state.cells["tp1"].reason) == ("failed", "server_crash")

    state.apply(event("starting", attempt=2))

    cell = state.cells["tp1"]
    assert (cell.status, cell.reason, cell.points_done, cell.best) == ("running", "", 0, None)
    assert state.points == 6  # tp1 had ended: its two points are to be done once more
    state.apply(event("starting", "tp1", attempt=2))
    assert len(state.todo) == 2


def test_what_was_measured_before_is_there_and_is_not_to_do(state):
    state.todo.remove(("tp2", "1"))
    state.recall(("tp2", "1"), {LOADS[0]: point(LOADS[0], 50.0)}, "ok", None)

    assert state.cells["tp2"].best == Best("1", 50.0, 2.0, "")
    assert (state.cells["tp2"].status, state.cells["tp2"].points_done) == ("ok", 2)
    assert state.points_done == 0


def test_words_of_others_lose_their_escape_codes(state):
    ended = ["pid 7 \x1b[31msglang\x1b[0m\r"]
    (told,) = state.apply(event("leftovers", ended=ended))
    assert told == "tp1: ended what an earlier run had left: pid 7 sglang"


@pytest.mark.parametrize("damaged", [{}, {"cell": "tp1"}, {"cell": "tp1", "launch": "1"}])
def test_a_damaged_event_is_refused_by_a_known_error(state, damaged):
    with pytest.raises(KeyError):
        state.apply(damaged)


def test_an_event_of_a_cell_that_is_not_planned_says_nothing(state):
    assert state.apply(event("starting", "gone", attempt=1)) == []


@pytest.mark.parametrize(
    ("load", "want"),
    [("c0008-i64-o64-random-ids", "8"), ("r2.5-i64-o64", "2.5/s"), ("r0.5-i64-o64", "0.5/s")],
)
def test_a_load_in_short(load, want):
    assert offered(load) == want


def test_the_time_left_counts_what_the_running_launch_has_used(state):
    whole = state.left_s(1000.0)
    assert whole == 2 * (60 + 6 + 4 * 2 + 6)  # as assumed: no launch has been timed
    state.apply(event("starting", attempt=1))
    assert state.left_s(1030.0) == whole - 30
    assert state.clock(1030.0) == "   0:30    0/4 points  about 2:10 left"
