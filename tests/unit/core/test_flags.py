"""What each validity flag bars: the list of DESIGN section 7."""

import pytest

from sgmatrix.core.flags import flags_of, is_barred

DESIGN = """partial, rate_limited, client_limited, queue_limited, cold, cache_hits, length_mismatch,
implausible, foreign_load, throttled, no_telemetry"""
NAMES = DESIGN.replace("\n", " ").split(", ")


@pytest.mark.parametrize("name", NAMES)
def test_every_flag_of_the_design_is_known_with_a_line_of_help(name):
    (flag,) = flags_of(name)

    assert flag.name == name
    assert flag.help
    assert "does not know" not in flag.help


@pytest.mark.parametrize("validity", ["valid", "", None])
def test_a_valid_or_unmeasured_point_has_no_flag_and_is_barred_from_nothing(validity):
    assert flags_of(validity) == []
    assert not is_barred({"validity": validity}, "throughput")
    assert not is_barred({"validity": validity}, "latency")


@pytest.mark.parametrize(
    ("validity", "throughput", "latency"),
    [
        ("partial", True, True),
        ("rate_limited", True, False),
        ("queue_limited", False, True),
        ("no_telemetry", False, False),
        ("rate_limited,queue_limited", True, True),
        ("no_telemetry,rate_limited", True, False),
        ("a_flag_of_a_later_version", True, True),
    ],
)
def test_a_point_is_barred_from_what_any_of_its_flags_bars(validity, throughput, latency):
    assert is_barred({"validity": validity}, "throughput") is throughput
    assert is_barred({"validity": validity}, "latency") is latency


@pytest.mark.parametrize(
    ("axis", "validity", "latency"),
    [
        ("axis_mem_fraction", "queue_limited", False),
        ("axis_max_running_requests", "queue_limited", False),
        ("axis_max_total_tokens", "queue_limited", False),
        ("axis_parallelism", "queue_limited", True),
        ("axis_mem_fraction", "queue_limited,cold", True),
        ("axis_mem_fraction", "a_flag_of_a_later_version", True),
    ],
)
def test_a_queue_bars_nothing_where_the_room_of_the_server_is_an_axis(axis, validity, latency):
    row = {"validity": validity, axis: None}  # the axis is there, this cell does not set it

    assert is_barred(row, "latency") is latency


def test_flags_keep_their_order():
    assert [flag.name for flag in flags_of("cold,partial")] == ["cold", "partial"]
