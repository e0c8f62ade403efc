"""What is not to be trusted is said, with the real load client against the stand-in server."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lab import Lab

pytestmark = pytest.mark.workflow

# A busy test machine limits the client, truly; here it is about other flags.
PATIENT = "validity: {max_client_delay_share: 1.0, max_client_gap: 1.0, max_foreign_share: 1.0}\n"


def verdicts(lab: Lab) -> dict[tuple[str, str], tuple[list[str], str]]:
    """(cell, load) to (flags, why)."""
    return {
        (row["cell"], row["load_id"].partition("-")[0]): (
            row["validity"].split(","),
            row["validity_detail"] or "",
        )
        for row in lab.points()
    }


def run(lab: Lab) -> None:
    done = lab.snakemake()
    assert done.returncode == 0, done.stdout


def test_each_fault_of_a_server_is_flagged_for_what_it_is(lab: Lab) -> None:
    faults = '[odd_log, "short_output:2", "http_500:0.25", flush_refused, "sse_error:0.25", '
    faults += '"error_body:0.25"]'
    lab.campaign(f"{{standin_fault: {faults}}}", waves=0, concurrency="[4]", extra=PATIENT)
    run(lab)

    said = {cell: flags for (cell, _), (flags, _) in verdicts(lab).items()}
    assert said == {
        "standin-fault-odd-log": ["cold"],
        "standin-fault-short-output-2": ["cold", "length_mismatch"],
        "standin-fault-http-500-0.25": ["partial", "cold"],
        "standin-fault-flush-refused": ["cold", "cache_hits"],
        "standin-fault-error-body-0.25": ["partial", "cold"],
        "standin-fault-sse-error-0.25": ["cold", "length_mismatch", "implausible"],
    }


def test_more_streams_than_a_server_runs_are_queue_limited_with_the_pool(lab: Lab) -> None:
    slots = "{max_running_requests: [2, 8]}"
    steps = "standin_tpot_ms: 1, decode_log_interval: 1"
    path = lab.campaign(slots, waves=2, concurrency="[8]", output_len=16, extra=PATIENT)
    path.write_text(
        path.read_text().replace("standin_ready_ms: 20", f"standin_ready_ms: 20, {steps}")
    )
    run(lab)

    found = verdicts(lab)
    flags, why = found["max-running-requests-2", "c0008"]
    assert "queue_limited" in flags
    assert re.search(
        r"up to 6 of 8 requests waited for a place, 2 ran at the most; .* \d+ tok", why
    )
    assert "queue_limited" not in found["max-running-requests-8", "c0008"][0]
    rows = {row["cell"]: row for row in lab.points()}
    assert rows["max-running-requests-2"]["running_max"] == 2
    assert rows["max-running-requests-8"]["running_max"] == 8


def test_a_single_stream_at_a_low_rate_is_no_single_stream_latency(lab: Lab) -> None:
    """The classic mistake: a request rate where a concurrency of 1 was meant."""
    path = lab.campaign("{parallelism: [tp1]}", waves=0, concurrency="[1]", extra=PATIENT)
    text = path.read_text().replace(
        "  input_len: 8\n", "  request_rate: [4]\n  max_concurrency: 1\n  input_len: 8\n"
    )
    path.write_text(text)
    run(lab)

    found = verdicts(lab)
    assert "rate_limited" in found["tp1", "r4"][0]
    assert "of at most 1 requests were in flight" in found["tp1", "r4"][1]
    assert "rate_limited" not in found["tp1", "c0001"][0]
    rows = {row["load_id"].partition("-")[0]: row for row in lab.points()}
    assert (rows["r4"]["concurrency"], rows["r4"]["request_rate"]) == (None, 4.0)
    assert rows["r4"]["concurrency_mean"] < 0.9 < rows["c0001"]["concurrency_mean"]


def test_what_else_uses_the_machine_is_foreign_load(lab: Lab) -> None:
    path = lab.campaign("{parallelism: [tp1]}", waves=0, output_len=16, hz=20)
    path.write_text(path.read_text().replace("standin_ready_ms: 20", "standin_tpot_ms: 40"))
    cpus = len(os.sched_getaffinity(0))
    busy = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(cpus)]
    try:
        run(lab)
    finally:
        for process in busy:
            process.kill()
            process.wait()

    flags, why = verdicts(lab)["tp1", "c0001"]
    assert "foreign_load" in flags
    assert re.search(r"foreign_load: other processes used \d+ % of the CPUs", why)


def values(lab: Lab) -> Iterator[tuple[str, str, str]]:
    """(phase, source, name) of the telemetry."""
    table: Path = lab.root / "datasets/telemetry.parquet"
    for row in pq.read_table(table).to_pylist():
        yield row["phase"], row["source"], row["name"]


def test_telemetry_is_taken_in_every_phase_and_nothing_of_it_is_left(lab: Lab) -> None:
    path = lab.campaign("{parallelism: [tp1]}", waves=2, output_len=16, hz=20, extra=PATIENT)
    slow = "standin_ready_ms: 1000, standin_tpot_ms: 40"
    path.write_text(path.read_text().replace("standin_ready_ms: 20", slow))
    run(lab)

    seen = set(values(lab))
    assert {phase for phase, source, _ in seen if source == "host"} >= {"start", "warmup", "point"}
    assert ("point", "server", "running") in seen
    assert ("point", "engine", "cpu_cores") in seen
    assert ("point", "harness", "cpu_cores") in seen
    assert lab.processes() == []
    for flags, _ in verdicts(lab).values():
        assert "no_telemetry" not in flags


def test_a_duration_is_told_by_a_wave_at_the_same_concurrency(lab: Lab) -> None:
    path = lab.campaign("{parallelism: [tp1]}", waves=2, output_len=16, extra=PATIENT)
    path.write_text(
        re.sub(r"requests: .*", "requests: {min: 1, duration_s: 0.4}", path.read_text())
    )
    run(lab)

    asked = {row["load_id"]: row["asked"] for row in lab.points()}
    (pilot,) = lab.root.glob("history/*/*/*/pilot/*/result.jsonl")  # two ran at once in the waves
    assert pilot.parent.name.startswith("c0001-")
    said = json.loads(pilot.read_text())
    assert asked[pilot.parent.name] == math.ceil(said["completed"] / said["duration"] * 0.4)
