"""Samples read back from a file that may have holes."""

import json

import pytest

from sgmatrix.node.telemetry.samples import (
    Sample,
    last_sample,
    read_errors,
    read_facts,
    read_samples,
)

FULL = {
    "t": 12.0,
    "took_ms": 1.5,
    "cpu_ms": 0.75,
    "skipped": 3,
    "lost": 2,
    "interval_s": 0.5,
    "host": {"cpu_busy_share": 0.25},
    "engine": {"processes": 4},
    "harness": {"cpu_cores": 0.125},
    "gpus": {"0": {"power_w": 300.5}},
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "telemetry.jsonl"

    def file(*records, tail=""):
        path.write_text("".join(json.dumps(record) + "\n" for record in records) + tail)
        return path

    return file


def times(samples):
    return [sample.t_s for sample in samples]


def test_a_sample_comes_back_as_it_was_written(file):
    assert read_samples(file(FULL)) == (
        Sample(
            t_s=12.0,
            interval_s=0.5,
            host={"cpu_busy_share": 0.25},
            engine={"processes": 4},
            harness={"cpu_cores": 0.125},
            gpus={"0": {"power_w": 300.5}},
            took_ms=1.5,
            cpu_ms=0.75,
            skipped=3,
            lost=2,
        ),
    )


def test_what_is_not_in_a_line_is_absent(file):
    assert read_samples(file({"t": 1.0})) == (Sample(t_s=1.0),)


def test_a_window_brings_its_two_neighbours_along(file):
    path = file(*({"t": float(t)} for t in range(10)))

    assert times(read_samples(path, 3.0, 5.0)) == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert times(read_samples(path, 3.1, 3.2)) == [3.0, 4.0]
    assert times(read_samples(path, -5.0, 0.5)) == [0.0, 1.0]
    assert times(read_samples(path, 20.0, 30.0)) == [9.0]
    assert len(read_samples(path)) == 10


@pytest.mark.parametrize("tail", ['{"t":7.0,"host":{"cpu', '{"t":7', "\x00\x00", '"t"\n', "7\n"])
def test_half_a_line_at_the_end_is_none(file, tail):
    assert times(read_samples(file({"t": 5.0}, {"t": 6.0}, tail=tail))) == [5.0, 6.0]


def test_half_a_line_in_the_middle_costs_that_line_only(file):
    path = file({"t": 5.0}, tail='{"t":6.0,"ho\n{"t":7.0}\n')

    assert times(read_samples(path)) == [5.0, 7.0]


def test_a_clock_that_was_set_back_leaves_them_in_order(file):
    assert times(read_samples(file({"t": 5.0}, {"t": 4.0}, {"t": 6.0}))) == [4.0, 5.0, 6.0]


def test_a_missing_file_has_nothing(tmp_path):
    path = tmp_path / "none"

    assert (read_samples(path), read_facts(path), read_errors(path)) == ((), {}, [])


def test_facts_of_the_machine_and_of_its_gpus_are_put_together(file):
    path = file(
        {"facts": {"hz": 2.0, "cpus": 8}},
        {"t": 1.0},
        {"error": {"source": "gpu 0", "kind": "x"}},
        {"facts": {"driver": "610.1", "gpus": {"0": {"name": "H200"}}}},
    )

    assert read_facts(path) == {
        "hz": 2.0,
        "cpus": 8,
        "driver": "610.1",
        "gpus": {"0": {"name": "H200"}},
    }
    assert read_errors(path) == [{"source": "gpu 0", "kind": "x"}]
    assert times(read_samples(path)) == [1.0]


def test_what_should_be_a_number_and_is_none_is_not_there(file):
    gpu = {"t": "now", "power_w": None, "util": 0.5, "throttle_reasons": [3, "hw_thermal", None]}
    pids = {"foreign_pids": [41, "x"], "unseen_pids": "none"}
    damaged = {**FULL, "interval_s": "x", "took_ms": [], "cpu_ms": {}, "skipped": "3", "lost": None}

    (sample,) = read_samples(file({**damaged, "gpus": {"0": {**gpu, **pids}, "1": 7}}))

    assert (sample.interval_s, sample.took_ms, sample.cpu_ms) == (None, None, None)
    assert (sample.skipped, sample.lost) == (0, 0)
    assert sample.gpus == {
        "0": {"util": 0.5, "throttle_reasons": ["hw_thermal"], "foreign_pids": [41]}
    }


def test_the_last_sample_is_read_from_the_end_alone(tmp_path):
    file = tmp_path / "telemetry.jsonl"
    assert last_sample(file) is None
    long = [json.dumps({"t": float(n), "host": {"cpu_busy_share": 0.5}}) for n in range(3000)]
    file.write_text("\n".join([*long, '{"error": {}}', '{"t": 9999.0, "ho']))

    found = last_sample(file)

    assert found is not None
    assert (found.t_s, found.host) == (2999.0, {"cpu_busy_share": 0.5})
