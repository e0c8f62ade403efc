"""The experiment of a study: made once, and right about where its artifacts lie."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.present.tracking.target import Target

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment

ARTIFACTS = "mlartifacts"
# The page of such an experiment opens with its runs, not with traces of a chat application.
_KIND = ("mlflow.experimentKind", "custom_model_development")
BUSY_S = 20.0


def study_experiment(
    client: MlflowClient, target: Target, study: str, artifacts: Path
) -> Experiment:
    """Return the experiment of a study; make it where it is not there.

    Args:
        client: of the target.
        target: a server says itself where artifacts go.
        study: name of the experiment.
        artifacts: folder for the artifacts of a target that is no server.

    Raises:
        SgmatrixError: `experiment_deleted`, for somebody took it away on purpose.
    """
    location = None if target.is_server else artifacts.resolve().as_uri()
    found = client.get_experiment_by_name(study) or _made(client, study, location)
    if found.lifecycle_stage == "deleted":
        raise SgmatrixError(
            "experiment_deleted",
            f"the MLflow experiment {study!r} (id {found.experiment_id}) is in MLflow's trash",
            fix=f"mlflow experiments restore --experiment-id {found.experiment_id}, or mlflow gc",
        )
    if target.database is not None and location is not None:
        _follow_move(target.database, found, location)
    if _KIND[0] not in found.tags:
        client.set_experiment_tag(found.experiment_id, *_KIND)
    return found


def _made(client: MlflowClient, study: str, location: str | None) -> Experiment:
    from mlflow.exceptions import MlflowException

    try:
        identity = client.create_experiment(study, artifact_location=location)
    except MlflowException as error:  # another machine was faster
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
        found = client.get_experiment_by_name(study)
        assert found is not None
        return found
    return client.get_experiment(identity)


def _follow_move(database: Path, experiment: Experiment, location: str) -> None:
    """Make an SQLite file that was moved with its artifacts name the folder beside it.

    MLflow keeps absolute addresses, and has no call that changes one.
    """
    former = experiment.artifact_location
    if former == location or Path(former).name != ARTIFACTS:
        return
    start = len(former) + 1  # SQLite counts from 1
    with contextlib.closing(sqlite3.connect(database, timeout=BUSY_S)) as connection, connection:
        connection.execute(
            "UPDATE experiments SET artifact_location = ? WHERE experiment_id = ?",
            (location, int(experiment.experiment_id)),
        )
        connection.execute(
            "UPDATE runs SET artifact_uri = ? || substr(artifact_uri, ?) "
            "WHERE experiment_id = ? AND substr(artifact_uri, 1, ?) = ?",
            (location, start, int(experiment.experiment_id), start, f"{former}/"),
        )
