"""GPUs through a stand-in for NVML: units, names, and trouble value by value."""

import pytest

from sgmatrix.node.telemetry.gpu_values import THROTTLE_REASONS, throttle_reasons
from sgmatrix.node.telemetry.gpus import Gpus, Reading
from standin.nvml import (
    Module,
    NVMLError,
    NVMLError_FunctionNotFound,
    NVMLError_GpuIsLost,
    NVMLError_NotSupported,
    NVMLError_Unknown,
)

FULL = {
    "power_w": 350.5,
    "energy_j": pytest.approx(123_456.789),
    "power_limit_w": 600.0,
    "utilization_share": 0.97,
    "memory_utilization_share": 0.41,
    "memory_used_mib": 90_000.0,
    "sm_mhz": 1980,
    "memory_mhz": 3201,
    "temperature_c": 61,
    "throttle_reasons": ["sw_power_cap", "hw_thermal"],
    "pcie_gen": 5,
    "pcie_width": 16,
    "pids": [5, 77],
}
"""What the stand-in's GPUs say, in our units."""


@pytest.fixture
def nvml():
    return Module("GPU-aaaa", "GPU-bbbb", "GPU-abcd")


@pytest.fixture
def told():
    return []


@pytest.fixture
def open_gpus(nvml, told):
    def open_gpus(*names):
        gpus = Gpus(names, lambda one: told.append(one.record()), lambda: nvml, lambda: 7.0)
        return gpus, gpus.open()

    return open_gpus


def test_every_value_has_our_name_and_our_unit(open_gpus, told):
    gpus, _ = open_gpus("0")
    reading = gpus.read()["0"]

    assert reading == Reading(at_s=7.0, t_s=reading.t_s, values=FULL)
    assert told == []


def test_the_facts_of_driver_and_gpus(open_gpus):
    _, facts = open_gpus("1")

    assert facts == {
        "driver": "610.43",
        "nvml": "13.610.43",
        "gpus": {
            "1": {
                "uuid": "GPU-bbbb",
                "name": "NVIDIA H200",
                "power_limit_w": 600.0,
                "power_limit_default_w": 700.0,
                "pcie_gen_max": 5,
                "pcie_width_max": 16,
            }
        },
    }


@pytest.mark.parametrize(
    ("name", "key", "uuid"),
    [
        ("2", "2", "GPU-abcd"),
        ("GPU-bbbb", "1", "GPU-bbbb"),
        ("GPU-b", "1", "GPU-bbbb"),
        ("GPU-aa", "0", "GPU-aaaa"),
    ],
)
def test_a_gpu_is_found_by_index_uuid_or_its_beginning(
    open_gpus, nvml, monkeypatch, name, key, uuid
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,0")
    gpus, facts = open_gpus(name)

    assert facts["gpus"][key]["uuid"] == uuid
    assert list(gpus.read()) == [key]


def test_a_part_of_a_card_keeps_its_own_name(open_gpus, nvml):
    nvml.parts = ["MIG-1234"]
    gpus, _ = open_gpus("MIG-1234", "0")

    assert list(gpus.read()) == ["MIG-1234", "0"]


@pytest.mark.parametrize("name", ["7", "GPU-zzzz", "GPU-a", "GPU-", ""])
def test_a_gpu_that_is_not_there_or_not_one_is_told_and_the_others_go_on(open_gpus, told, name):
    gpus, _ = open_gpus(name, "1")

    assert list(gpus.read()) == ["1"]
    assert told == [
        {
            "source": f"gpu {name}",
            "kind": "NVMLError_InvalidArgument",
            "detail": "Invalid Argument",
        }
    ]


def test_a_value_that_a_gpu_does_not_have_is_left_out_and_not_asked_for_again(
    open_gpus, nvml, told
):
    nvml.answers["GPU-bbbb", "TotalEnergyConsumption"] = NVMLError_NotSupported("Not Supported")
    gpus, _ = open_gpus("0", "1")
    for _ in range(3):
        readings = gpus.read()

    assert readings["1"].values == {k: v for k, v in FULL.items() if k != "energy_j"}
    assert readings["0"].values == FULL
    assert nvml.calls.count(("GPU-bbbb", "TotalEnergyConsumption")) == 1
    assert told == [
        {
            "source": "gpu 1",
            "what": "energy_j",
            "kind": "NVMLError_NotSupported",
            "detail": "Not Supported",
        }
    ]


def test_a_value_that_fails_for_a_while_comes_back(open_gpus, nvml, told):
    gpus, _ = open_gpus("0")
    nvml.answers["GPU-aaaa", "PowerUsage"] = NVMLError_Unknown("Unknown Error")
    assert "power_w" not in gpus.read()["0"].values
    assert "power_w" not in gpus.read()["0"].values
    del nvml.answers["GPU-aaaa", "PowerUsage"]

    assert gpus.read()["0"].values["power_w"] == 350.5
    assert [(one["what"], one["kind"]) for one in told] == [("power_w", "NVMLError_Unknown")]


def test_a_lost_gpu_gives_no_half_reading_and_is_left_alone(open_gpus, nvml, told):
    gpus, _ = open_gpus("0", "1")
    nvml.answers["GPU-aaaa", "ClockInfo"] = NVMLError_GpuIsLost("GPU is lost")
    assert list(gpus.read()) == ["1"]
    nvml.calls.clear()

    assert list(gpus.read()) == ["1"]
    assert {uuid for uuid, *_ in nvml.calls} == {"GPU-bbbb"}
    assert told == [{"source": "gpu 0", "kind": "NVMLError_GpuIsLost", "detail": "GPU is lost"}]


def test_without_the_library_there_are_no_gpus_and_it_is_told(told):
    def absent():
        raise ModuleNotFoundError("No module named 'pynvml'")

    gpus = Gpus(["0"], lambda one: told.append(one.record()), absent)

    assert (gpus.open(), gpus.read()) == ({}, {})
    assert told == [
        {"source": "nvml", "kind": "ModuleNotFoundError", "detail": "No module named 'pynvml'"}
    ]


def test_a_driver_that_does_not_start_is_told(open_gpus, nvml, told, monkeypatch):
    def broken():
        raise NVMLError("Driver Not Loaded")

    monkeypatch.setattr(nvml, "nvmlInit", broken, raising=False)

    assert open_gpus("0")[1] == {}
    assert told == [{"source": "nvml", "kind": "NVMLError", "detail": "Driver Not Loaded"}]


@pytest.mark.parametrize("error", [NVMLError_FunctionNotFound("x"), AttributeError("x")])
def test_the_old_name_of_a_call_answers_too(open_gpus, nvml, told, error):
    nvml.answers["GPU-aaaa", "CurrentClocksEventReasons"] = error

    assert open_gpus("0")[0].read()["0"].values["throttle_reasons"] == ["sw_thermal"]
    assert told == []


def test_a_driver_without_a_call_lacks_that_value_only(open_gpus, nvml, told):
    for name in ("CurrentClocksEventReasons", "CurrentClocksThrottleReasons"):
        nvml.answers["GPU-aaaa", name] = NVMLError_FunctionNotFound("Function Not Found")
    values = open_gpus("0")[0].read()["0"].values

    assert values == {k: v for k, v in FULL.items() if k != "throttle_reasons"}
    assert [one["what"] for one in told] == ["throttle_reasons"]


def test_a_call_that_fails_is_not_asked_by_its_other_name(open_gpus, nvml, told):
    nvml.answers["GPU-aaaa", "CurrentClocksEventReasons"] = NVMLError_Unknown("x")

    assert "throttle_reasons" not in open_gpus("0")[0].read()["0"].values
    assert [one["kind"] for one in told] == ["NVMLError_Unknown"]


@pytest.mark.parametrize(
    ("mask", "names"),
    [
        (0, []),
        (0x1, ["gpu_idle"]),
        (0x108, ["hw_slowdown", "display"]),
        (0x1FF, list(THROTTLE_REASONS.values())[:9]),
        (0x8004, ["sw_power_cap", "unknown_0x8000"]),
    ],
)
def test_reasons_are_the_names_of_bits(mask, names):
    assert throttle_reasons(mask) == names
