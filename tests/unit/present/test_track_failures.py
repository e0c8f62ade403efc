"""A target that is down, hangs or refuses: one line, in bounded time, and nothing half current."""

import contextlib
import http.server
import shutil
import socket
import sqlite3
import threading

import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import ErrorCode
from sqlalchemy import Engine, event

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json
from sgmatrix.present.tracking import connection, track
from sgmatrix.present.tracking.failures import failure
from sgmatrix.present.tracking.target import Target, find_target


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    for name in ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    quick = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "1", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
    monkeypatch.setattr(connection, "_FIRST_CALL", quick)


@contextlib.contextmanager
def answering(status, body=b""):
    """A server that says `status` and `body` to everything."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def refusal(told, uri):
    record = told.layout.root / "tracking.json"
    with pytest.raises(SgmatrixError) as caught:
        track.track_to(find_target(None, {"MLFLOW_TRACKING_URI": uri}), told.layout, record)
    assert not record.exists()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_server_that_is_down_is_named_with_the_command_that_replays(told):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound and not listening: refused
        port = free.getsockname()[1]
        text = refusal(told, f"http://127.0.0.1:{port}")

    assert f"http://127.0.0.1:{port} cannot be reached" in text
    assert "snakemake track; nothing of the results is lost" in text


def test_a_server_that_never_answers_is_given_up(told):
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(8)
        text = refusal(told, f"http://127.0.0.1:{deaf.getsockname()[1]}")

    assert "does not answer in time" in text


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, b"", "refuses the user name or password"),
        (403, b"", "does not let this user write"),
        (403, b'{"error_code": "PERMISSION_DENIED", "message": "no"}', "does not let this user"),
        (500, b"", "answers with errors (500)"),
        (404, b"", "is no MLflow server, or refuses (404)"),
        (200, b"<html>log in</html>", "is no MLflow server: it answers with something else"),
    ],
)
def test_a_server_that_refuses_is_told_apart(told, status, body, words):
    with answering(status, body) as uri:
        text = refusal(told, uri.replace("//", "//me:SENTINEL-word@"))

    assert words in text
    assert "SENTINEL" not in text


def test_a_locked_database_is_waited_for_again(told, database, monkeypatch):
    calls = []

    def busy(self, *arguments, **named):
        calls.append(1)
        if len(calls) < 3:
            raise sqlite3.OperationalError("database is locked")
        return whole(self, *arguments, **named)

    whole = MlflowClient.log_batch
    monkeypatch.setattr(MlflowClient, "log_batch", busy)
    record = told.layout.root / "tracking.json"
    track.track_to(Target(f"sqlite:///{database}", "db", database), told.layout, record)

    assert record.exists() and len(calls) == 3 + 2
    client = MlflowClient(f"sqlite:///{database}")
    runs = client.search_runs([client.get_experiment_by_name("tests").experiment_id])
    assert sum(run.data.tags.get("bench.current") == "true" for run in runs) == 3


def test_a_database_that_is_locked_when_it_is_opened_is_waited_for_as_long(told, database):
    waits = []

    def note(dialect, record, arguments, named):
        waits.append(named.get("timeout"))

    event.listen(Engine, "do_connect", note)
    try:
        connection.connect(Target(f"sqlite:///{database}", "db", database))
    finally:
        event.remove(Engine, "do_connect", note)

    assert set(waits) == {20.0}


def test_a_database_that_stays_locked_is_named(told, database, monkeypatch):
    def busy(*arguments, **named):
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(MlflowClient, "log_batch", busy)
    text = refusal(told, f"sqlite:///{database}")

    assert "is kept locked by another program" in text


def test_a_folder_that_is_none_is_one_line(told):
    place = told.layout.root.parent / "file"
    place.write_text("")
    text = refusal(told, f"sqlite:///{place}/mlflow.db")

    assert text.startswith("tracking_failed: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(sqlite3.OperationalError) attempt to write a readonly database", "cannot be written"),
        ("[Errno 30] Read-only file system: 'x'", "cannot be written"),
        ("(sqlite3.DatabaseError) database disk image is malformed", "is damaged"),
        ("No module named 'psycopg2'", "needs the Python package psycopg2"),
        ("Detected out-of-date database schema (found", "another version of MLflow"),
        ("boom password=SENTINEL-word", "boom password=***"),
    ],
)
def test_errors_of_a_database_say_what_to_do(text, words):
    line = str(failure(RuntimeError(text + "\nmore"), Target("sqlite:///x", "x")))

    assert words in line and "SENTINEL" not in line and "\n" not in line


def test_results_that_were_moved_have_their_artifacts_beside_them(told, database, tmp_path):
    record = told.layout.root / "tracking.json"
    track.track_to(Target(f"sqlite:///{database}", "db", database), told.layout, record)
    moved = tmp_path / "elsewhere"
    shutil.move(database.parent, moved)
    layout = type(told.layout)(moved / told.layout.root.name)
    there = moved / "mlflow.db"
    track.track_to(Target(f"sqlite:///{there}", "db", there), layout, layout.root / "tracking.json")

    client = MlflowClient(f"sqlite:///{there}")
    experiment = client.get_experiment_by_name("tests")
    assert experiment.artifact_location == (moved / "mlartifacts").as_uri()
    runs = client.search_runs([experiment.experiment_id], "tags.bench.kind = 'cell'")
    assert len(runs) == 3
    for run in runs:
        names = {one.path for one in client.list_artifacts(run.info.run_id)}
        assert {"argv.json", "cell.yaml", "points.csv", "server.log"} <= names


def test_a_writer_that_lets_go_is_waited_for(told, database):
    writer = sqlite3.connect(database, check_same_thread=False)
    writer.execute("BEGIN EXCLUSIVE")
    release = threading.Timer(1.0, writer.rollback)
    release.start()
    record = told.layout.root / "tracking.json"
    track.track_to(Target(f"sqlite:///{database}", "db", database), told.layout, record)
    release.join()
    writer.close()

    assert len(read_json(record)["runs"]) == 3


def test_a_file_that_may_be_read_only_is_one_line(told, database):
    database.chmod(0o444)
    real = sqlite3.connect

    def read_only(*arguments, **named):
        return real(f"file:{database}?mode=ro", uri=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3.dbapi2, "connect", read_only)
        patch.setattr(sqlite3, "connect", read_only)
        text = refusal(told, f"sqlite:///{database}")

    assert "cannot be written" in text and "make the file and its folder writable" in text


@pytest.mark.parametrize("code", ["INVALID_PARAMETER_VALUE", "BAD_REQUEST", "PERMISSION_DENIED"])
def test_a_server_that_refuses_the_view_of_all_cells_has_the_runs(
    told, database, monkeypatch, code
):
    def refusing(self, experiment, name, value):
        if name.startswith("mlflow.sharedViewState."):
            raise MlflowException("no", error_code=ErrorCode.Value(code))
        return whole(self, experiment, name, value)

    whole = MlflowClient.set_experiment_tag
    monkeypatch.setattr(MlflowClient, "set_experiment_tag", refusing)
    record = told.layout.root / "tracking.json"
    track.track_to(Target(f"sqlite:///{database}", "db", database), told.layout, record)

    assert len(read_json(record)["runs"]) == 3
    assert read_json(record)["page"].endswith("compareRunsMode=CHART")


def test_a_run_whose_tags_somebody_edited_is_made_anew(told, database):
    record = told.layout.root / "tracking.json"
    target = Target(f"sqlite:///{database}", "db", database)
    track.track_to(target, told.layout, record)
    ((key, its), *_) = read_json(record)["runs"].items()
    client = MlflowClient(target.uri)
    client.set_tag(its["run_id"], "bench.attempt", "the good one")

    track.track_to(target, told.layout, record)

    new = read_json(record)["runs"][key]["run_id"]
    assert client.get_run(its["run_id"]).data.tags["bench.superseded_by"] == new
    assert client.get_run(new).data.tags["bench.current"] == "true"
