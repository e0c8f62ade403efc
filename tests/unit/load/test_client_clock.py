"""When a client began and when it wrote, from made-up files."""

import os

import pytest

from sgmatrix.load import client_clock
from sgmatrix.load.client_clock import ClientClock

SIGN = b"Warmup completed with 0 sequences. Starting main benchmark run...\n"


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A log that was made at second 100 by the clock of its file system."""
    path = tmp_path / "client.log"
    with path.open("xb") as file:
        os.utime(path, (100, 100))
        yield file


@pytest.fixture
def clock(log, tmp_path, monkeypatch):
    """This machine showed 70 then: its clock is 30 s behind."""
    monkeypatch.setattr(client_clock.time, "time", lambda: 70.0)
    return ClientClock(log, tmp_path / "result.jsonl")


def says(log, text, at_s):
    log.write(text)
    log.flush()
    os.utime(log.name, (at_s, at_s))


def test_a_run_begins_a_second_after_the_client_said_so_by_our_own_clock(clock, log):
    says(log, b"#Input tokens: 64\n", 103)
    clock.look()
    assert clock.began_s is None
    says(log, SIGN, 104)
    clock.look()

    assert clock.began_s == 104 - 30 + 1


def test_what_a_client_says_later_does_not_move_its_begin(clock, log):
    says(log, SIGN, 104)
    clock.look()
    says(log, SIGN, 109)
    clock.look()

    assert clock.began_s == 75


def test_a_begin_that_was_seen_too_late_is_not_known(clock, log):
    says(log, SIGN + b"a warning\n", 109)
    clock.look()

    assert clock.began_s is None


def test_the_moment_of_the_result_is_by_our_own_clock(clock, tmp_path):
    assert clock.wrote_s() is None
    (tmp_path / "result.jsonl").write_text("{}")
    os.utime(tmp_path / "result.jsonl", (120, 120))

    assert clock.wrote_s() == 90
