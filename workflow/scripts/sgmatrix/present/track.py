"""Finished launches to MLflow: one top-level run per complete attempt, step = concurrency.

Tracking can be replayed at any time: the history on disk is the truth, MLflow a view of it.
A run is known by key (campaign/cell/launch), attempt and digest of its content; what is there
already is not written again. A run counts once `bench.current` is true, which is set last, so
that a job that is killed leaves no half run that anyone would read; the next job ends it.

MLflow is imported here alone, inside functions: it takes a second and 200 MB.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json, replacing, write_json
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.history import read_attempts
from sgmatrix.present.runs import Run, attempt_runs

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run as MlflowRun

LOCK_WAIT_S = 120.0
_PAGE = 1000
_COMPLETE = ("FINISHED", "FAILED")
_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ASYNC_LOGGING": "false",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
}


@contextlib.contextmanager
def _locked(database: Path) -> Iterator[None]:
    """Keep the track jobs of all campaigns apart: a fresh database is made by one of them."""
    database.parent.mkdir(parents=True, exist_ok=True)
    with database.with_name(f".{database.name}.lock").open("w") as lock:
        deadline = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise SgmatrixError(
                        "tracking_busy",
                        f"another job writes to {database} for more than {LOCK_WAIT_S:g} s",
                        fix="run snakemake again; the results are on disk",
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
def _without_fsync() -> Iterator[None]:
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


def _client(database: Path) -> MlflowClient:
    """Return a client on the database, which is made whole or not at all if it is not there.

    Raises:
        SgmatrixError: `tracking_failed` when the file is no database that this MLflow can use.
    """
    os.environ.update(_SETTINGS)
    with _uncollected():
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
        from mlflow.store.tracking import sqlalchemy_store  # noqa: F401 - needed at once anyway

    def connect(file: Path) -> MlflowClient:
        client = MlflowClient(tracking_uri=f"sqlite:///{file}")
        client.search_experiments(max_results=1)  # makes the tables where there are none
        return client

    if not database.exists():
        with replacing(database) as neighbour, _without_fsync():
            connect(neighbour)
    with database.open("rb") as file:
        if file.read(16) != b"SQLite format 3\0":  # MLflow would try to open it for minutes
            raise SgmatrixError(
                "tracking_failed",
                f"{database} is no SQLite database",
                fix="move it away; it is made anew",
            )
    try:
        return connect(database)
    except MlflowException as error:
        raise SgmatrixError(
            "tracking_failed",
            f"{database}: {str(error).splitlines()[0]}",
            fix=f"mlflow db upgrade sqlite:///{database}, after a backup",
        ) from error


def _experiment(client: MlflowClient, study: str, artifacts: Path) -> str:
    """Return the id of the study's experiment.

    Raises:
        SgmatrixError: `experiment_deleted`, for somebody took it away on purpose.
    """
    found = client.get_experiment_by_name(study)
    if found is None:
        return str(client.create_experiment(study, artifact_location=artifacts.as_uri()))
    if found.lifecycle_stage == "deleted":
        raise SgmatrixError(
            "experiment_deleted",
            f"the MLflow experiment {study!r} (id {found.experiment_id}) is in MLflow's trash",
            fix=f"mlflow experiments restore --experiment-id {found.experiment_id}, or mlflow gc",
        )
    return str(found.experiment_id)


def _known_runs(client: MlflowClient, experiment: str, campaign: str) -> list[MlflowRun]:
    """Return what MLflow holds of a campaign, oldest first."""
    runs: list[MlflowRun] = []
    token = None
    while True:
        page = client.search_runs(
            [experiment],
            f"tags.bench.campaign = '{campaign}'",
            max_results=_PAGE,
            order_by=["attributes.start_time ASC", "attributes.run_id ASC"],
            page_token=token,
        )
        runs += page
        token = page.token
        if not token:
            return runs


def _commit() -> str | None:
    """Return the git commit of this checkout; None when it is none, or has none."""
    project = Path(__file__).resolve().parents[4]
    try:
        asked = subprocess.run(
            ["git", "-C", str(project), "rev-parse", "--show-toplevel", "HEAD"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    top, commit = asked.stdout.split("\n")[:2]
    return commit if Path(top) == project else None  # else it is the commit of a folder above


def _create(client: MlflowClient, experiment: str, run: Run, commit: str | None) -> str:
    """Write one run, whole, not yet current; return its id."""
    from mlflow.entities import Metric, Param

    tags = {
        **run.tags,
        "bench.key": run.key,
        "bench.attempt": str(run.attempt),
        "bench.digest": run.digest,
        "bench.current": "false",
        **({"mlflow.source.git.commit": commit} if commit else {}),
    }
    created = client.create_run(experiment, start_time=run.start_ms, tags=tags, run_name=run.name)
    run_id = str(created.info.run_id)
    metrics = [Metric(one.key, one.value, one.time_ms, one.step) for one in run.metrics]
    client.log_batch(run_id, metrics, [Param(name, text) for name, text in run.params.items()])
    with tempfile.TemporaryDirectory() as folder:
        for name, text in run.files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        client.log_artifacts(run_id, folder)
    client.set_terminated(run_id, "FINISHED" if run.ok else "FAILED", run.end_ms)
    return run_id


def _identity(tags: dict[str, str]) -> tuple[str, int, str]:
    return (
        tags.get("bench.key", ""),
        int(tags.get("bench.attempt", 0)),
        tags.get("bench.digest", ""),
    )


def _mark(
    client: MlflowClient,
    tags: dict[str, dict[str, str]],
    current: Iterable[str],
    successor: dict[str, str],
) -> None:
    """Say of each run whether it is current and what superseded it, where `tags` do not say so.

    First what no longer counts, then what does: between the two, nothing is current.
    """
    for run_id, newer in successor.items():
        for name, text in (("bench.current", "false"), ("bench.superseded_by", newer)):
            if tags[run_id].get(name) != text:
                client.set_tag(run_id, name, text)
    for run_id in current:
        if "bench.superseded_by" in tags[run_id]:
            client.delete_tag(run_id, "bench.superseded_by")
        if tags[run_id].get("bench.current") != "true":
            client.set_tag(run_id, "bench.current", "true")


def _synchronise(
    client: MlflowClient, experiment: str, campaign: str, runs: Sequence[Run]
) -> dict[str, dict[str, Any]]:
    """Make MLflow hold exactly these runs; return the current one of each key."""
    tags: dict[str, dict[str, str]] = {}
    known: dict[tuple[str, int, str], str] = {}
    for one in _known_runs(client, experiment, campaign):
        if one.info.status == "RUNNING":  # of a job that was killed: the lock is ours
            client.set_terminated(one.info.run_id, "KILLED", one.info.start_time)
        elif one.info.status in _COMPLETE:
            tags[one.info.run_id] = dict(one.data.tags)
            known.setdefault(_identity(one.data.tags), one.info.run_id)
    commit = _commit()
    current: dict[str, tuple[str, Run]] = {}
    for run in runs:
        identity = (run.key, run.attempt, run.digest)
        if identity not in known:
            known[identity] = _create(client, experiment, run, commit)
            tags[known[identity]] = {"bench.key": run.key, "bench.current": "false"}
        if run.current:
            current[run.key] = (known[identity], run)
    ids = {key: run_id for key, (run_id, _) in current.items()}
    successor = {
        run_id: ids[key]
        for run_id, its in tags.items()
        if (key := its.get("bench.key", "")) in ids and run_id != ids[key]
    }
    _mark(client, tags, ids.values(), successor)
    return {
        key: {"attempt": run.attempt, "digest": run.digest, "run_id": run_id}
        for key, (run_id, run) in current.items()
    }


def track(layout: Layout, database: Path, record: Path) -> None:
    """Bring MLflow up to date with the history of a campaign.

    Args:
        layout: where the campaign's files lie.
        database: SQLite file; made when it is not there. Artifacts go beside it.
        record: file for the run ids; the same bytes when nothing changed.

    Raises:
        SgmatrixError: when the database cannot be used; nothing of the results is lost then.
    """
    plan = read_json(layout.plan)
    runs = attempt_runs(read_attempts(layout))
    database = database.resolve()
    with _locked(database):
        client = _client(database)
        experiment = _experiment(client, plan["study"], database.parent / "mlartifacts")
        current = _synchronise(client, experiment, plan["campaign"], runs)
    write_json(record, {"experiment": plan["study"], "experiment_id": experiment, "runs": current})
