"""Runs to MLflow: what is there already is not written again.

A run is known by key (campaign/cell/launch), attempt and digest of its content. It counts once
`bench.current` is true, which is set last, so that a job that is killed leaves no half run that
anyone would read; the next job ends it.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sgmatrix.present.tracking.curves import curves_png
from sgmatrix.present.tracking.failures import is_twice
from sgmatrix.present.tracking.runs import Run

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput
    from mlflow.entities import Run as MlflowRun

_PAGE = 1000
_COMPLETE = ("FINISHED", "FAILED")
_TRIES = 5


def _known_runs(client: MlflowClient, experiment: str, campaign: str) -> list[MlflowRun]:
    """Return what MLflow holds of a campaign, oldest first."""
    runs: list[MlflowRun] = []
    token = None
    while True:
        page = client.search_runs(
            [experiment],
            f"tags.bench.campaign = '{campaign}' AND tags.bench.kind = 'cell'",
            max_results=_PAGE,
            order_by=["attributes.start_time ASC", "attributes.run_id ASC"],
            page_token=token,
        )
        runs += page
        token = page.token
        if not token:
            return runs


def commit() -> str | None:
    """Return the git commit of this checkout; None when it is none, or has none."""
    project = Path(__file__).resolve().parents[5]
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


def _create(client: MlflowClient, experiment: str, run: Run, revision: str | None) -> str:
    """Write one run, whole, not yet current; return its id."""
    from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param

    tags = {
        **run.tags,
        "bench.key": run.key,
        "bench.attempt": str(run.attempt),
        "bench.digest": run.digest,
        "bench.current": "false",
        **({"mlflow.source.git.commit": revision} if revision else {}),
    }
    created = client.create_run(experiment, start_time=run.start_ms, tags=tags, run_name=run.name)
    run_id = str(created.info.run_id)
    metrics = [Metric(one.key, one.value, one.time_ms, one.step) for one in run.metrics]
    client.log_batch(run_id, metrics, [Param(name, text) for name, text in run.params.items()])
    context = [InputTag("mlflow.data.context", "benchmark")]
    prompts = [
        DatasetInput(Dataset(one.name, one.digest, "prompts", one.source), context)
        for one in run.prompts
    ]
    _log_prompts(client, run_id, prompts)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in run.files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        if (picture := curves_png(run.metrics)) is not None:
            (Path(folder) / "curves.png").write_bytes(picture)
        client.log_artifacts(run_id, folder)
    client.set_terminated(run_id, "FINISHED" if run.ok else "FAILED", run.end_ms)
    return run_id


def _log_prompts(client: MlflowClient, run_id: str, prompts: list[DatasetInput]) -> None:
    """Tell a run's prompts; runs that tell the same ones at once make one entry of them.

    MLflow looks whether an entry is there, then makes it: of two at once the second fails, and
    finds it when it looks again.
    """
    for left in reversed(range(_TRIES)):
        try:
            client.log_inputs(run_id, prompts)
        except Exception as error:
            if not left or not is_twice(error):
                raise
        else:
            return


def _identity(tags: dict[str, str]) -> tuple[str, int, str]:
    attempt = tags.get("bench.attempt", "")  # people may edit tags: such a run is not ours
    return (
        tags.get("bench.key", ""),
        int(attempt) if attempt.isdecimal() else -1,
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


def synchronise(
    client: MlflowClient, experiment: str, campaign: str, runs: Sequence[Run], *, at_once: int = 1
) -> dict[str, dict[str, Any]]:
    """Make MLflow hold these runs; return the current one of each key.

    An attempt that no longer counts stays as it was told while it did.

    Args:
        client: of the target.
        experiment: its id.
        campaign: the runs of others are left alone.
        runs: of the history.
        at_once: runs that are written at the same time; more than one is right for a server.
    """
    tags: dict[str, dict[str, str]] = {}
    known: dict[tuple[str, int, str], str] = {}
    for one in _known_runs(client, experiment, campaign):
        if one.info.status == "RUNNING":  # of a job that was killed: the lock is ours
            client.set_terminated(one.info.run_id, "KILLED", one.info.start_time)
        elif one.info.status in _COMPLETE:
            tags[one.info.run_id] = dict(one.data.tags)
            known.setdefault(_identity(one.data.tags), one.info.run_id)
    told = {(key, attempt) for key, attempt, _ in known}
    missing = [
        run
        for run in runs
        if (run.key, run.attempt, run.digest) not in known
        and (run.current or (run.key, run.attempt) not in told)
    ]
    revision = commit() if missing else None
    with ThreadPoolExecutor(at_once) as pool:
        made = pool.map(lambda run: _create(client, experiment, run, revision), missing)
        for run, run_id in zip(missing, made, strict=True):
            known[run.key, run.attempt, run.digest] = run_id
            tags[run_id] = {"bench.key": run.key, "bench.current": "false"}
    current = {
        run.key: (known[run.key, run.attempt, run.digest], run) for run in runs if run.current
    }
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
