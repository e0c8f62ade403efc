"""What telemetry saw while a load point was measured, from made-up samples."""

import json
import os

import pytest

from sgmatrix.load.evidence import Surroundings
from sgmatrix.load.surroundings import surroundings


@pytest.fixture
def file(tmp_path):
    def file(*samples):
        path = tmp_path / "telemetry.jsonl"
        path.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
        return path

    return file


def sample(t, foreign=0.0, **gpu):
    host = {"foreign_cpu_cores": foreign}
    gpus = {"3": {"t": t, **gpu}} if gpu else {}
    return {"t": t, "interval_s": 0.5, "host": host, "gpus": gpus}


def test_the_power_of_the_window_and_before_the_server_filled_its_gpu(file):
    seen = [
        sample(0.0, power_w=80.0, memory_used_mib=5),
        sample(0.5, power_w=90.0, memory_used_mib=5),
        sample(1.0, power_w=100.0, memory_used_mib=5),
        sample(1.5, power_w=300.0, memory_used_mib=9000),
        sample(2.0, power_w=300.0, memory_used_mib=9000, throttle_reasons=["sw_thermal"]),
        sample(2.5, power_w=400.0, memory_used_mib=9000, throttle_reasons=[]),
    ]
    around = surroundings(file(*seen), (2.0, 2.5), hz=2.0, devices=["gpu-3"])

    assert (around.power_w_mean, around.energy_j) == (350.0, 175.0)
    assert around.power_idle_w == 90.0
    assert around.throttled == {"sw_thermal": 0.5}
    assert around.coverage == {"host": 1.0, "gpu 3": 1.0}
    assert around.foreign_pids == []


def test_the_energy_counter_speaks_where_there_is_one_since_power_lags(file):
    seen = [sample(t / 2, power_w=80.0 + 40 * t, energy_j=1000.0 + 300 * t) for t in range(9)]
    around = surroundings(file(*seen), (1.0, 4.2), hz=2.0, devices=["gpu-3"])

    assert around.power_w_mean == pytest.approx(600.0)  # 300 J each half second
    assert around.energy_j == pytest.approx(600.0 * 3.2)


def test_a_counter_that_covers_too_little_of_the_window_does_not_speak(file):
    seen = [sample(t / 2, power_w=100.0, energy_j=300.0 * t) for t in range(4)]
    seen += [sample(t / 2, power_w=100.0) for t in range(4, 9)]
    around = surroundings(file(*seen), (1.0, 4.0), hz=2.0, devices=["gpu-3"])

    assert around.power_w_mean == pytest.approx(100.0)


def test_a_gpu_that_is_named_by_its_uuid_is_found_under_its_index(file):
    facts = {"facts": {"gpus": {"3": {"uuid": "GPU-5a1b2c3d-0000"}}}}
    seen = [sample(1.0, power_w=50.0), sample(2.0, power_w=50.0)]
    devices = ["gpu-GPU-5a1b2c3d"]  # any beginning that is unique, as CUDA takes it
    around = surroundings(file(facts, *seen), (1.0, 2.0), hz=1.0, devices=devices)

    assert around.power_w_mean == 50.0
    assert set(around.coverage) == {"host", "gpu 3"}


def test_foreign_processes_are_those_of_the_window(file):
    seen = [
        sample(1.0, foreign=9.0, power_w=1.0, foreign_pids=[7]),
        sample(2.0, foreign=1.0, power_w=1.0, foreign_pids=[41, 8]),
        sample(2.5, foreign=1.0, power_w=1.0, foreign_pids=[41]),
    ]
    around = surroundings(file(*seen), (1.5, 2.5), hz=2.0, devices=["gpu-3"])

    assert around.foreign_pids == [8, 41]
    assert around.foreign_share == pytest.approx(1.0 / len(os.sched_getaffinity(0)))


def test_a_window_shorter_than_a_tick_is_covered_by_the_tick_before_it(file):
    around = surroundings(file(sample(1.0)), (1.2, 1.3), hz=2.0, devices=["cpu"])

    assert around.coverage == {"host": 1.0}


def test_a_source_that_fell_silent_is_missed(file):
    seen = [sample(t / 2, power_w=1.0) for t in range(4)] + [sample(t / 2) for t in range(4, 20)]
    around = surroundings(file(*seen), (2.0, 9.5), hz=2.0, devices=["gpu-3"])

    assert around.coverage["host"] == 1.0
    assert around.coverage["gpu 3"] < 0.1
    assert around.power_w_mean is None


def test_without_telemetry_every_source_is_missed_but_where_none_was_asked_for(tmp_path):
    none = tmp_path / "telemetry.jsonl"
    around = surroundings(none, (1.0, 2.0), hz=2.0, devices=["cpu"])

    assert around.coverage == {"host": 0.0}
    assert around.foreign_share is None
    assert surroundings(none, (1.0, 2.0), hz=0.0, devices=["cpu"]) == Surroundings()
