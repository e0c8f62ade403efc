"""Times of records are UTC with microseconds, and come back exactly."""

import re
import time
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from sgmatrix.core.clock import Stopwatch, now_utc, parse_utc


def test_a_record_s_time_is_iso_in_utc_with_microseconds():
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", now_utc())


def test_a_time_of_another_zone_is_the_same_instant_in_utc():
    parsed = parse_utc("2026-11-20T12:30:00+02:00")

    assert parsed == datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
    assert parsed.tzinfo == UTC


@given(st.datetimes(timezones=st.just(timezone(timedelta(hours=-5)))))
def test_every_time_that_is_written_is_read_back(when):
    assert parse_utc(when.isoformat(timespec="microseconds")) == when


def test_a_stopwatch_counts_by_the_monotonic_clock(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    watch = Stopwatch()
    monkeypatch.setattr(time, "monotonic", lambda: 102.5)
    monkeypatch.setattr(time, "time", lambda: 0.0)  # somebody set the wall clock

    assert watch.elapsed_s() == 2.5
