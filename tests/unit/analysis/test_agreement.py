"""Whether a repeated launch agrees with before."""

import numpy as np
import pytest

from sgmatrix.analysis.agreement import (
    METRICS,
    agreements,
    noise_of,
    relative,
    repeated_launches,
)

LOAD = "c0008-i64-o64-random-ids"


def row(**metrics):
    return {"load_id": LOAD, **metrics}


def first(old, new, others=()):
    table = agreements({LOAD: row(output_tok_s=old)}, {LOAD: row(output_tok_s=new)}, others)
    return next(one for one in table if one.metric == "output_tok_s")


def test_one_earlier_start_says_nothing_of_noise():
    one = first(100.0, 90.0)

    assert (one.old, one.new, one.difference) == (100.0, 90.0, pytest.approx(-0.1))
    assert (one.starts, one.noise, one.verdict) == (1, None, "unknown")


def test_two_starts_give_a_wide_interval():
    # mean 101, s = sqrt(2), t = 12.706, sqrt(1.5): 22.0 around 101
    assert noise_of([100.0, 102.0]) == pytest.approx(12.706 * 2**0.5 * 1.5**0.5 / 101)
    assert first(102.0, 120.0, [row(output_tok_s=100.0)]).verdict == "within_noise"
    assert first(102.0, 124.0, [row(output_tok_s=100.0)]).verdict == "beyond_noise"


def test_starts_at_other_load_points_do_not_count():
    other = {"load_id": "c0001-i64-o64-random-ids", "output_tok_s": 1.0}

    assert first(100.0, 101.0, [other]).starts == 1


def test_about_95_of_100_equal_starts_lie_within():
    rng = np.random.default_rng(7)
    hits = sum(
        abs(draw[-1] - draw[:-1].mean()) <= noise_of(list(draw[:-1])) * draw[:-1].mean()
        for draw in rng.normal(1000, 10, size=(4000, 5))
    )

    assert hits / 4000 == pytest.approx(0.95, abs=0.015)


def test_noise_is_of_starts_that_were_measured_alike_and_hold():
    def start(launch, attempt, rate, **changes):
        about = {"cell": "a", "cell_key": "k", "launch": launch, "attempt": attempt, "status": "ok"}
        about |= {"current": attempt != 1, "harness": 2, "validity": "valid", "load_id": LOAD}
        return about | {"output_tok_s": rate} | changes

    rows = [
        start("1", 1, 100.0),
        start("1", 2, 101.0),
        start("2", 2, 102.0),
        start("3", 2, 500.0, harness=1),
        start("4", 2, 600.0, validity="foreign_load"),
        start("5", 2, 103.0, validity="no_telemetry"),  # which bars nothing
        start("6", 2, 700.0, cell_key="other"),
    ]

    (found,) = repeated_launches(rows)
    one = next(point for point in found.points if point.metric == "output_tok_s")
    assert (one.old, one.new, one.starts) == (100.0, 101.0, 3)


def test_a_missing_value_is_not_measured_and_no_0():
    one = first(None, 100.0, [row(output_tok_s=90.0), row(output_tok_s=91.0)])

    assert (one.difference, one.verdict) == (None, "not_measured")
    assert relative(0.0, 5.0) is None


def test_every_metric_of_every_point_has_a_line():
    table = agreements({}, {LOAD: row(), "other": {"load_id": "other"}})

    assert [one.metric for one in table] == [*METRICS, *METRICS]
