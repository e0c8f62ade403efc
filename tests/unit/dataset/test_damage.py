"""Tables are made of what is whole: odd lines, damaged files, records of older versions."""

import json
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest

from builders import History, campaign
from sgmatrix.core.parquet import table_from_rows
from sgmatrix.core.schemas import TELEMETRY
from sgmatrix.dataset.collect import Tables, collect
from sgmatrix.present.tracking.system_metrics import system_metrics

BEGAN_S = 1_790_000_000


def telemetry(*values):
    return table_from_rows(
        [
            {
                "campaign": "c", "cell": "tp1", "launch": "1", "attempt": 1, "phase": "point",
                "time": datetime.fromtimestamp(BEGAN_S + at, UTC), "t_s": at, "source": source,
                "device": device, "name": name, "value": value,
            }
            for at, source, device, name, value in values
        ],
        TELEMETRY,
    )  # fmt: skip


@pytest.mark.parametrize(("name", "want"), [("running", 64.0), ("output_tok_s", 4000.0)])
def test_mlflow_shows_what_all_ranks_of_a_server_do_not_one_of_them(name, want):
    each = want / 8
    seen = system_metrics(telemetry(*((1.0, "server", rank, name, each) for rank in range(8))))
    assert [one.value for one in seen] == [want]


def tables(history, tmp_path):
    paths = Tables.of(history.layout)
    collect(history.layout, paths)
    return paths.points, paths.requests, paths.telemetry, paths.experts


@pytest.fixture
def history(tmp_path):
    history = History(tmp_path, campaign())
    history.attempt("tp1")
    file = folder(history) / "teardown.json"
    final = json.loads(file.read_text())
    times = {
        "asked": BEGAN_S - 1.0,
        "started": BEGAN_S,
        "stopping": BEGAN_S + 50.0,
        "closed": BEGAN_S + 51.0,
    }
    file.write_text(json.dumps(final | {"closed": (final.get("closed") or {}) | {"times": times}}))
    return history


def folder(history):
    return history.layout.attempt("tp1", "1", 1)


@pytest.mark.parametrize(
    "line",
    [
        {"t": 1790000000.0, "host": None},
        {"t": 1790000000.0, "host": {"load_average_1m": None}},
        {"t": 1790000000.0, "host": []},
        {"t": 1e400, "host": {"load_average_1m": 1.0}},
        {"t": 1e300, "host": {"load_average_1m": 1.0}},
        {"t": 1790000000.0, "gpus": {"0": None}},
        {"t": 1790000000.0, "gpus": {"123456": {"power_w": 1.0}}},
        {"t": 1790000000.0, "gpus": {"0": {"throttle_reasons": None}}},
    ],
)
def test_a_line_of_telemetry_that_is_odd_does_not_end_the_collection(history, tmp_path, line):
    (folder(history) / "telemetry.jsonl").write_text(json.dumps(line) + "\n")
    (folder(history) / "telemetry.parquet").unlink(missing_ok=True)
    tables(history, tmp_path)


def test_telemetry_is_made_again_where_its_file_is_damaged(history, tmp_path):
    (folder(history) / "telemetry.parquet").write_bytes(b"PAR1 half")
    tables(history, tmp_path)


def test_telemetry_of_an_older_form_is_joined_by_name(history, tmp_path):
    old = TELEMETRY.empty_table().drop_columns(["device"])
    pq.write_table(old, folder(history) / "telemetry.parquet")
    tables(history, tmp_path)


def test_a_point_s_requests_that_are_damaged_do_not_end_the_collection(history, tmp_path):
    file = next((folder(history) / "points").glob("*.requests.parquet"))
    file.write_bytes(b"PAR1 half")
    tables(history, tmp_path)


@pytest.mark.parametrize("key", ["telemetry", "validity", "warmup", "server"])
def test_a_spec_of_an_older_version_lacks_keys(history, tmp_path, key):
    file = folder(history) / "spec.json"
    spec = json.loads(file.read_text())
    spec.pop(key, None)
    for point in spec["points"]:
        for name in (
            "request_rate",
            "max_concurrency",
            "burstiness",
            "prompts",
            "slo",
            "duration_s",
        ):
            point.pop(name, None)
    file.write_text(json.dumps(spec))
    tables(history, tmp_path)


def test_tables_do_not_depend_on_the_time_zone_of_who_collects(history, tmp_path, monkeypatch):
    """Results are copied home and collected there; a log's times are the node's local ones."""
    import time

    (folder(history) / "server.log").write_text(
        "[2026-09-21 14:13:21] Decode batch, #running-req: 8, #token: 100, token usage: 0.10, "
        "cuda graph: True, gen throughput (token/s): 100.00, #queue-req: 0\n"
    )
    found = []
    for zone in ("UTC", "Asia/Tokyo"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        (folder(history) / "telemetry.parquet").unlink(missing_ok=True)
        found.append(pq.read_table(tables(history, tmp_path)[2])["t_s"].to_pylist())
    monkeypatch.undo()
    time.tzset()
    assert found[0] == found[1]
