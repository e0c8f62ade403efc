"""Summaries of a window, from samples made by hand and values worked out by hand."""

import pytest

from sgmatrix.node.telemetry.samples import Sample
from sgmatrix.node.telemetry.window import (
    Power,
    coverage,
    host_mean,
    idle_power_w,
    power,
    readings,
    throttle_shares,
)


def gpus(t_s, **values):
    """A sample of GPU 0."""
    return Sample(t_s, gpus={"0": {"t": t_s, **values}})


# 100 W until 11, then up to 300 W at 12, and so on; the counter is the exact area
RISE = [
    gpus(10.0, power_w=100.0, energy_j=5000.0),
    gpus(11.0, power_w=100.0, energy_j=5100.0),
    gpus(12.0, power_w=300.0, energy_j=5300.0),
    gpus(13.0, power_w=300.0, energy_j=5600.0),
]


def test_power_is_weighted_by_time_over_exactly_the_window():
    found = power(RISE, 11.5, 13.0, ["0"])

    # 200..300 W for 0.5 s and 300 W for 1 s: 125 + 300 J in 1.5 s
    assert found.power_w_mean == pytest.approx(425.0 / 1.5)
    assert found.counter_j == pytest.approx(400.0)  # 5200 at 11.5, by the line


def test_gpus_are_summed_and_one_that_is_missing_takes_the_sum_away():
    both = [
        Sample(t, gpus={"0": {"t": t, "power_w": 100.0}, "3": {"t": t, "power_w": w}})
        for t, w in ((0.0, 200.0), (1.0, 400.0), (2.0, 400.0))
    ]

    assert power(both, 0.0, 2.0, ["0", "3"]).power_w_mean == pytest.approx(100 + 350)
    assert power(both, 0.0, 2.0, ["0", "1"]) == Power(None, None)


def test_without_gpus_there_is_no_power():
    assert power(RISE, 10.0, 13.0, []) == Power(None, None)


def test_a_window_that_has_just_ended_holds_the_last_reading():
    found = power(RISE, 12.0, 13.5, ["0"])

    assert found == Power(300.0, None)  # a power is held for a while, a counter is not


def test_a_gap_is_not_bridged():
    holes = [RISE[0], RISE[3]]

    assert power(holes, 10.0, 13.0, ["0"]).power_w_mean is None
    assert power(holes, 10.0, 13.0, ["0"], max_gap_s=3.0).power_w_mean == 200.0


def test_a_reading_that_two_samples_hold_counts_once_and_at_its_own_time():
    late = Sample(12.5, gpus={"0": {"t": 12.0, "power_w": 300.0}})

    assert readings([*RISE[:3], late], "0", "power_w") == [
        (10.0, 100.0),
        (11.0, 100.0),
        (12.0, 300.0),
    ]


def test_the_idle_level_is_the_median_before_a_moment():
    steady = [gpus(float(t), power_w=w) for t, w in enumerate([70.0, 500.0, 72.0, 71.0, 900.0])]

    assert idle_power_w(steady, 3.0, ["0"]) == 72.0  # of 70, 500, 72
    assert idle_power_w(steady, 4.0, ["0"]) == 71.5
    assert idle_power_w(steady, 0.0, ["0"]) is None
    assert idle_power_w(steady, 4.0, ["0", "1"]) is None


def test_a_reason_to_throttle_counts_in_each_sample_once():
    told = [
        Sample(
            0.0, gpus={"0": {"throttle_reasons": []}, "1": {"throttle_reasons": ["sw_thermal"]}}
        ),
        Sample(1.0, gpus={"0": {"throttle_reasons": ["sw_power_cap"]}, "1": {}}),
        Sample(
            2.0,
            gpus={
                "0": {"throttle_reasons": ["sw_power_cap"]},
                "1": {"throttle_reasons": ["sw_power_cap", "sw_thermal"]},
            },
        ),
        Sample(3.0, gpus={"0": {"throttle_reasons": []}}),
        Sample(4.0),  # nothing is known
    ]

    assert throttle_shares(told, 0.0, 9.0, ["0", "1"]) == {"sw_power_cap": 0.5, "sw_thermal": 0.5}
    assert throttle_shares(told, 0.0, 9.0, ["0"]) == {"sw_power_cap": 0.5}
    assert throttle_shares(told, 3.0, 4.0, ["0"]) == {}
    assert throttle_shares(told, 4.0, 9.0, ["0"]) is None


def test_a_rate_counts_by_the_part_of_its_interval_in_the_window():
    rates = [
        Sample(1.0, interval_s=None, host={"foreign_cpu_cores": 99.0}),
        Sample(2.0, interval_s=1.0, host={"foreign_cpu_cores": 4.0}),
        Sample(2.5, interval_s=0.5, host={"foreign_cpu_cores": 0.0}),
        Sample(4.5, interval_s=2.0, host={"foreign_cpu_cores": 1.0}),
        Sample(5.0, interval_s=0.5, host={}),
    ]

    # 0.5 s of 4 cores, 0.5 s of 0, 1 s of 1: 3 CPU seconds in 2 s
    assert host_mean(rates, 1.5, 3.5, "foreign_cpu_cores") == 1.5
    assert host_mean(rates, 4.6, 5.0, "foreign_cpu_cores") is None
    assert host_mean([], 0.0, 1.0, "foreign_cpu_cores") is None


@pytest.mark.parametrize(
    ("ticks_s", "end_s", "want"),
    [
        ([0.0, 0.5, 1.0, 1.5, 2.0], 2.0, 1.0),
        ([0.3, 0.8, 1.3, 1.8], 2.0, 1.0),
        ([0.3, 1.8, 2.5], 2.0, 0.5),
        ([], 2.0, 0.0),
        ([0.1], 0.2, 1.0),
        ([], 0.2, 0.0),
        ([0.0], 0.0, None),
    ],
)
def test_coverage_is_the_share_of_expected_ticks(ticks_s, end_s, want):
    assert coverage(ticks_s, 0.0, end_s, 2.0) == want
