"""Collectives against hand calculations and measured tables."""

import dataclasses

import pytest

from ceiling_facts import H200, RTX
from sgmatrix.analysis.ceiling.links import allreduce_s, measured_allreduce_s, shuffle_s
from sgmatrix.core.facts.hardware import Link

PLAIN = Link("test", peak_bytes_s=100.0, practical_bytes_s=50.0, latency_s={2: 1.0, 8: 3.0})


def test_a_ring_moves_the_message_nearly_twice() -> None:
    assert allreduce_s(PLAIN, 400, 4, "hard") == pytest.approx(2 * 3 / 4 * 400 / 100)
    assert allreduce_s(PLAIN, 400, 8, "practical") == pytest.approx(3 + 2 * 7 / 8 * 400 / 50)


def test_a_switch_that_adds_up_moves_it_once() -> None:
    switched = dataclasses.replace(PLAIN, in_network_reduce=True)
    assert allreduce_s(switched, 400, 4, "hard") == 4.0


def test_one_device_and_no_message_cost_nothing() -> None:
    assert allreduce_s(PLAIN, 400, 1, "practical") == 0
    assert allreduce_s(PLAIN, 0, 8, "practical") == 0
    assert allreduce_s(None, 400, 8, "practical") == 0
    assert shuffle_s(PLAIN, 0, 8, "practical") == 0


def test_the_floor_is_that_of_the_nearest_number_of_devices() -> None:
    assert shuffle_s(PLAIN, 50, 3, "practical") == 1 + 1
    assert shuffle_s(PLAIN, 50, 6, "practical") == 3 + 1


def test_tables_are_read_between_their_points() -> None:
    link = dataclasses.replace(PLAIN, allreduce_s={8: ((100.0, 1.0), (400.0, 4.0))})
    assert measured_allreduce_s(link, 200, 8) == pytest.approx(2.0)
    assert measured_allreduce_s(link, 10, 8) == 1.0
    assert measured_allreduce_s(link, 800, 8) == 8.0
    assert measured_allreduce_s(link, 800, 2) is None


def test_what_this_node_measured_is_the_practical_tier() -> None:
    table = {8: ((100.0, 1.0), (400.0, 4.0))}
    here = dataclasses.replace(PLAIN, allreduce_s=table, measured_here=True)
    elsewhere = dataclasses.replace(PLAIN, allreduce_s=table)
    assert allreduce_s(here, 200, 8, "practical") == pytest.approx(2.0)
    assert allreduce_s(here, 200, 4, "practical") == allreduce_s(PLAIN, 200, 4, "practical")
    assert allreduce_s(here, 200, 8, "hard") == allreduce_s(PLAIN, 200, 8, "hard")
    assert allreduce_s(elsewhere, 200, 8, "practical") == allreduce_s(PLAIN, 200, 8, "practical")


def test_no_measured_all_reduce_beats_the_hard_tier() -> None:
    for device in (RTX, H200):
        link = device.link
        assert link is not None
        for devices, points in link.allreduce_s.items():
            for size, seconds in points:
                assert allreduce_s(link, size, devices, "hard") <= seconds, (device.name, devices)
