"""The table of telemetry: which phase a value belongs to, and that it is made once."""

import json
import time

import pytest

from builders import History, campaign
from sgmatrix.core.files import read_json, write_json
from sgmatrix.dataset.history import read_attempts
from sgmatrix.dataset.telemetry import attempt_table, phases_of

BEGAN_S = 1_790_000_000.0


@pytest.fixture
def attempt(tmp_path):
    """A complete attempt with telemetry at 10 (start), 25 (point), 35 (teardown) seconds."""
    made = History(tmp_path, campaign())
    folder = made.attempt("tp1")
    (first, *_) = made.plan["launches"][0]["points"]
    path = folder / "points" / f"{first['load_id']}.json"
    window = {"window_s": [BEGAN_S + 20, BEGAN_S + 30], "log_bytes": [5, 999]}
    write_json(path, read_json(path) | window)
    times = {"asked": 0, "started": 5, "ready": 12, "stopping": 34, "closed": 36}
    final = read_json(folder / "teardown.json")
    final["closed"] = {"times": {name: BEGAN_S + at for name, at in times.items()}}
    final["warmup"] = {"window_s": [BEGAN_S + 14, BEGAN_S + 16]}
    write_json(folder / "teardown.json", final)
    samples = [
        {
            "t": BEGAN_S + at,
            "interval_s": 0.5,
            "cpu_ms": 1.5,
            "host": {"cpu_busy_share": 0.25},
            "engine": {"processes": 4},
            "gpus": {
                "1": {
                    "t": BEGAN_S + at - 0.1,
                    "power_w": 300.0,
                    "throttle_reasons": ["sw_thermal"],
                }
            },
        }
        for at in (10, 25, 35)
    ]
    lines = [json.dumps(sample) for sample in samples]
    (folder / "telemetry.jsonl").write_text("\n".join(lines) + '\n{"t": 17900')
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(BEGAN_S + 19))  # whole seconds
    (folder / "server.log").write_text(
        f"begin\n[{stamp} DP1 TP0] Decode batch, #running-req: 7, gen throughput (token/s): 90.50, "
        "#queue-req: 2\n"
    )
    return made, folder


def only(made):
    """The one attempt of a history, read again."""
    (attempt,) = read_attempts(made.layout)
    return attempt


def rows(table, **where):
    return [
        row for row in table.to_pylist() if all(row[name] == value for name, value in where.items())
    ]


def test_each_value_is_a_row_with_its_phase(attempt):
    made, _ = attempt
    table = attempt_table(only(made))

    busy = rows(table, source="host", name="cpu_busy_share")
    load = made.plan["launches"][0]["points"][0]["load_id"]
    assert [(r["phase"], r["load_id"], r["t_s"], r["value"]) for r in busy] == [
        ("start", None, 5.0, 0.25),
        ("point", load, 20.0, 0.25),
        ("teardown", None, 30.0, 0.25),
    ]
    assert {(r["cell"], r["launch"], r["attempt"]) for r in busy} == {("tp1", "1", 1)}
    assert len(rows(table, source="sampler", name="cpu_ms")) == 3


def test_a_gpu_has_its_index_its_own_time_and_its_reasons(attempt):
    made, _ = attempt
    table = attempt_table(only(made))

    (power, *_) = rows(table, source="gpu", name="power_w")
    assert (power["device"], power["value"]) == (1, 300.0)
    assert power["t_s"] == pytest.approx(4.9)
    assert [r["value"] for r in rows(table, name="throttle_sw_thermal")] == [1.0] * 3


def test_what_the_server_logged_is_beside_it(attempt):
    made, _ = attempt
    found = rows(attempt_table(only(made)), source="server")

    assert {(r["name"], r["value"], r["device"], r["phase"]) for r in found} == {
        ("running", 7.0, 1, "point"),
        ("queued", 2.0, 1, "point"),
        ("output_tok_s", 90.5, 1, "point"),
    }


def test_it_is_made_once_and_the_same_again(attempt):
    made, folder = attempt
    table = attempt_table(only(made))
    kept = (folder / "telemetry.parquet").read_bytes()
    (folder / "telemetry.jsonl").unlink()

    assert attempt_table(only(made)).equals(table)
    assert (folder / "telemetry.parquet").read_bytes() == kept


def test_an_attempt_that_never_started_has_none(tmp_path):
    made = History(tmp_path, campaign())
    made.attempt("tp1")

    assert attempt_table(only(made)).num_rows == 0


def test_what_lies_between_two_steps_is_neither():
    times = {"asked": 0.0, "started": 1.0, "ready": 2.0, "stopping": 9.0, "closed": 10.0}
    point = {"load_id": "c1", "window_s": [5.0, 6.0]}
    phases = phases_of(times, None, [point, {"load_id": "c2"}])

    moments = (1.5, 3.0, 5.5, 7.0, 9.5, 99.0)
    assert [phases.at(moment) for moment in moments] == [
        ("start", None),
        ("between", None),
        ("point", "c1"),
        ("between", None),
        ("teardown", None),
        ("between", None),
    ]
