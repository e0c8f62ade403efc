"""A client of MLflow: locked, made once, bounded in time.

MLflow is imported here, inside functions: it takes a second and 200 MB.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import replacing
from sgmatrix.present.tracking.target import Target

if TYPE_CHECKING:
    from mlflow import MlflowClient

LOCK_WAIT_S = 120.0
_BUSY_S = 20
_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ASYNC_LOGGING": "false",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
}
# A server that is there is waited for longer than one that has not answered yet.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "20", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}
_FIRST_CALL = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "8", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}


@contextlib.contextmanager
def locked(target: Target, results: Path) -> Iterator[None]:
    """Keep the track jobs of all campaigns apart: a fresh database is made by one of them.

    Args:
        target: where they write to.
        results: folder of the lock where that is no file.
    """
    file = target.database
    place = file.with_name(f".{file.name}.lock") if file else results / ".tracking.lock"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("w") as lock:
        deadline = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise SgmatrixError(
                        "tracking_busy",
                        f"another job tracks to {target.public} for more than {LOCK_WAIT_S:g} s",
                        fix="run snakemake track later; the results are on disk",
                    ) from None
                time.sleep(0.05)
        yield


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the garbage collector off what the block makes, now and at exit.

    The modules of MLflow are a million objects that live as long as the process; looking
    through them again and again is a third of the import, and half a second at the end.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextlib.contextmanager
def without_fsync() -> Iterator[None]:
    """Let SQLite not wait for the disk in the block.

    MLflow makes its tables by some sixty migrations, each with commits of its own. They are
    made in a neighbour file that is thrown away when anything goes wrong, so none of them need
    be durable; a job that is killed among them leaves no database that no MLflow opens.
    """
    from sqlalchemy import Engine, event

    def relax(connection: Any, _: object) -> None:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA journal_mode = MEMORY")

    event.listen(Engine, "connect", relax)
    try:
        yield
    finally:
        event.remove(Engine, "connect", relax)


def _set_variables(target: Target) -> None:
    """Tell MLflow what it takes from the environment alone; what the user has set there stays."""
    os.environ.update(_SETTINGS)
    for name, text in _PATIENCE.items():
        os.environ.setdefault(name, text)
    if target.username is not None:
        os.environ["MLFLOW_TRACKING_USERNAME"] = target.username
        os.environ["MLFLOW_TRACKING_PASSWORD"] = target.password or ""


def connect(target: Target) -> MlflowClient:
    """Return a client; an SQLite file is made whole or not at all if it is not there.

    Raises:
        SgmatrixError: `tracking_failed` when the file is no database.
    """
    _set_variables(target)
    with _uncollected():
        from mlflow import MlflowClient

        if not target.is_server:
            from mlflow.store.tracking import sqlalchemy_store  # noqa: F401 - needed at once anyway
    if target.database is not None:
        _provide(target.database)
        # MLflow waits as long for a locked file, but only once it has opened it
        uri = f"sqlite:///{target.database}?timeout={_BUSY_S}"
        return _greeted(MlflowClient(tracking_uri=uri))
    client = MlflowClient(tracking_uri=target.uri)
    if not target.is_server:
        return _greeted(client)
    usual = {name: os.environ[name] for name in _FIRST_CALL}
    os.environ.update(_FIRST_CALL)
    try:
        return _greeted(client)
    finally:
        os.environ.update(usual)


def _greeted(client: MlflowClient) -> MlflowClient:
    client.search_experiments(max_results=1)  # makes the tables where there are none
    return client


def _provide(database: Path) -> None:
    """Make the tables of a file that is not there; refuse one that is something else."""
    from mlflow import MlflowClient

    if not database.exists():
        with replacing(database) as neighbour, without_fsync():
            _greeted(MlflowClient(tracking_uri=f"sqlite:///{neighbour}"))
    with database.open("rb") as file:
        if file.read(16) != b"SQLite format 3\0":  # MLflow would try to open it for minutes
            raise SgmatrixError(
                "tracking_failed",
                f"{database} is no SQLite database",
                fix="move it away; it is made anew",
            )
