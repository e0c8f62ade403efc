"""Areas, borders and counters, by hand; what was not measured stays unknown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgmatrix.node.telemetry.series import area, at, growth, series, weighted_mean

RAMP = [(0.0, 100.0), (1.0, 200.0), (2.0, 200.0), (3.0, 0.0)]


@pytest.mark.parametrize(
    ("when_s", "want"), [(0.0, 100.0), (0.25, 125.0), (1.5, 200.0), (2.75, 50.0), (3.0, 0.0)]
)
def test_a_value_between_two_points_lies_on_their_line(when_s, want):
    assert at(RAMP, when_s, 1.0) == want


@pytest.mark.parametrize("when_s", [-0.1, 3.1])
def test_a_value_beyond_the_ends_is_unknown(when_s):
    assert at(RAMP, when_s, 1.0) is None


def test_a_gap_that_is_too_long_has_values_at_its_ends_only():
    points = [(0.0, 1.0), (5.0, 3.0)]

    assert at(points, 2.5, 5.0) == 2.0
    assert at(points, 2.5, 4.9) is None
    assert (at(points, 0.0, 4.9), at(points, 5.0, 4.9)) == (1.0, 3.0)


@pytest.mark.parametrize(
    ("start_s", "end_s", "want"),
    [
        (0.0, 3.0, 150.0 + 200.0 + 100.0),
        (0.5, 2.5, 87.5 + 200.0 + 75.0),  # 150..200 for 0.5 s, 200, 200..100 for 0.5 s
        (1.25, 1.75, 100.0),  # no point within
    ],
)
def test_an_area_is_over_exactly_the_window(start_s, end_s, want):
    assert area(RAMP, start_s, end_s, 1.0) == pytest.approx(want)


def test_the_last_value_is_held_for_less_than_a_gap():
    assert area(RAMP[:3], 1.0, 2.5, 1.0) == 300.0
    assert area(RAMP[1:3], 0.5, 2.0, 1.0) == 300.0
    assert area(RAMP[:3], 1.0, 3.5, 1.0) is None


@pytest.mark.parametrize(
    ("points", "start_s", "end_s"),
    [
        ([], 0.0, 1.0),
        (RAMP, 1.0, 1.0),
        (RAMP, 2.0, 1.0),
        (RAMP, 3.5, 3.9),  # wholly after the last
        (RAMP, -0.9, -0.5),
        ([(0.0, 1.0), (0.5, 1.0), (2.0, 1.0)], 0.0, 2.0),  # a gap within
    ],
    ids=["nothing", "no length", "backwards", "after", "before", "gap"],
)
def test_what_was_not_measured_has_no_area(points, start_s, end_s):
    assert area(points, start_s, end_s, 1.0) is None


@given(st.lists(st.floats(0, 1e3), min_size=2, max_size=20), st.floats(0.01, 0.99))
def test_the_areas_of_two_halves_are_the_whole(values, cut):
    points = [(float(i), v) for i, v in enumerate(values)]
    end_s = points[-1][0]
    parts = [area(points, a, b, 1.0) for a, b in ((0.0, cut * end_s), (cut * end_s, end_s))]

    assert sum(parts) == pytest.approx(area(points, 0.0, end_s, 1.0))


def test_a_counter_grows_between_interpolated_borders():
    counter = [(0.0, 1000.0), (1.0, 1100.0), (2.0, 1300.0)]

    assert growth(counter, 0.5, 1.5, 1.0) == 150.0  # 1050 to 1200
    assert growth(counter, 0.0, 2.0, 1.0) == 300.0
    assert growth(counter, 0.5, 2.5, 1.0) is None  # a counter is not held
    assert growth(counter, 1.0, 1.0, 1.0) is None


def test_a_counter_that_was_set_back_tells_nothing():
    assert growth([(0.0, 900.0), (1.0, 5.0), (2.0, 1000.0)], 0.0, 2.0, 1.0) is None


def test_a_series_is_sorted_and_has_each_time_once():
    assert series([(2.0, 5.0), (1.0, 4.0), (2.0, 5.0)]) == [(1.0, 4.0), (2.0, 5.0)]


def test_a_mean_counts_by_weight_and_nothing_has_none():
    assert weighted_mean([(1.0, 2.0), (3.0, 6.0), (-1.0, 99.0)]) == 5.0
    assert weighted_mean([]) is None
    assert weighted_mean([(0.0, 1.0)]) is None
