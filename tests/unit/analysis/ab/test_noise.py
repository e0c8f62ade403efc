import math

import pytest

from sgmatrix.analysis.ab.compare import conclude
from sgmatrix.analysis.ab.inputs import Rules, Series
from sgmatrix.analysis.ab.noise import noise_of

RULES = Rules("c1", "ttft_ms_mean", 1.0, 3, 3)


def aa(*logs):
    return tuple((100.0, None if log is None else 100 * math.exp(log)) for log in logs)


def series(same, logs=(0.10, 0.11, 0.12), load_id="c1"):
    variant = tuple(100 * math.exp(log) for log in logs)
    return Series(load_id, "ttft_ms_mean", (100.0,) * len(logs), variant, same)


def only(same, **more):
    return conclude([series(same, **more)], RULES).results[0]


def test_the_floor_is_the_root_mean_square_by_hand():
    # sqrt((1 + 4 + 4) e-4 / 3) = 0.017321; exp of it is 1.01747.
    (found,) = noise_of([series(aa(0.01, -0.02, 0.02))], 3)

    assert found.floor_pct == pytest.approx(1.74714, abs=1e-4)
    assert found.differs_pct is None


def test_one_pair_gives_a_floor_and_none_gives_none():
    assert only(aa(0.01, None)).noise_floor_pct == pytest.approx(1.00502, abs=1e-4)
    assert only(aa(0.01, None)).aa_pairs == 1
    assert only(()).noise_floor_pct is None


def test_an_effect_above_the_floor_raises_no_warning():
    assert only(aa(0.01, -0.02, 0.02)).warning == ""


def test_an_effect_below_the_floor_says_so_and_keeps_its_verdict():
    found = only(aa(0.2, -0.2, 0.15))

    assert found.text == "worse"
    assert "typically differ by (20 %)" in found.warning


def test_an_aa_pair_that_differs_is_named():
    # t^2 = 0.021^2 x 3 / 0.001^2 = 1323, p = 1 - sqrt(1323 / 1325) = 0.000755.
    found = only(aa(0.020, 0.021, 0.022))

    assert found.warning.startswith("the A/A pair differs by +2.1 % (p = 0.00076)")


def test_aa_pairs_of_all_load_points_are_tested_together():
    # t^2 = 0.03^2 x 3 / 0.01^2 = 27, p = 1 - sqrt(27 / 29) = 0.03510; twice that for two.
    three = aa(0.02, 0.03, 0.04)
    alone = noise_of([series(three)], 3)
    both = noise_of([series(three), series(aa(0.0, 0.01, -0.01), load_id="c2")], 3)

    assert alone[0].p_adjusted == pytest.approx(0.03510, abs=1e-5)
    assert alone[0].differs_pct == pytest.approx(3.04545, abs=1e-4)
    assert both[0].p_adjusted == pytest.approx(0.07020, abs=1e-5)
    assert both[0].differs_pct is None


def test_the_larger_p_of_two_is_not_doubled_but_never_below_the_smaller():
    # The second: mean 0.1 / 3, t^2 = 100 / 7, p = 1 - sqrt(14.2857 / 16.2857) = 0.0634.
    found = noise_of([series(aa(0.02, 0.03, 0.04)), series(aa(0.02, 0.03, 0.05), load_id="c2")], 3)

    assert [one.p_adjusted for one in found] == pytest.approx([0.07020, 0.07020], abs=1e-5)


def test_rounds_after_the_stop_do_not_count():
    same = aa(0.01, 0.01, 0.01, 3.0)

    assert noise_of([series(same)], 3)[0].pairs == 3
