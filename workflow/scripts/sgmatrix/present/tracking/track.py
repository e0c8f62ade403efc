"""Finished launches to MLflow: one top-level run per complete attempt, step = concurrency.

Tracking can be replayed at any time: the history on disk is the truth, MLflow a view of it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json, write_json
from sgmatrix.core.layout import Layout
from sgmatrix.present.tracking.connection import connect, locked
from sgmatrix.present.tracking.dashboard import provide_dashboard, varying_levers
from sgmatrix.present.tracking.experiment import ARTIFACTS, study_experiment
from sgmatrix.present.tracking.failures import failure, is_locked, is_twice
from sgmatrix.present.tracking.report_run import synchronise_report
from sgmatrix.present.tracking.runs import Run, attempt_runs
from sgmatrix.present.tracking.synchronise import synchronise
from sgmatrix.present.tracking.target import Target, find_target

TRIES = 4
"""While SQLite is locked; it waits 20 s by itself each time."""
_AT_ONCE = 4


def track(layout: Layout, asked: str | None, record: Path) -> None:
    """Bring MLflow up to date with the history of a campaign.

    Args:
        layout: where the campaign's files lie.
        asked: `tracking_uri` of `--config`.
        record: file for the run ids; the same bytes when nothing changed.

    Raises:
        SgmatrixError: when MLflow cannot be written; nothing of the results is lost then.
    """
    track_to(find_target(asked, os.environ), layout, record)


def track_to(target: Target, layout: Layout, record: Path) -> None:
    """Bring one target up to date; see `track`."""
    runs = attempt_runs(layout)
    for left in reversed(range(TRIES)):
        try:
            write_json(record, _told(target, layout, runs))
        except SgmatrixError:
            raise
        except Exception as error:
            if left and (is_locked(error) or is_twice(error)):
                continue
            raise failure(error, target) from error
        return


def _told(target: Target, layout: Layout, runs: list[Run]) -> dict[str, Any]:
    """Write what is missing; return what is to be recorded."""
    plan = read_json(layout.plan)
    results = layout.root.parent
    folder = target.database.parent if target.database else results
    with locked(target, results):
        client = connect(target)
        experiment = study_experiment(client, target, plan["study"], folder / ARTIFACTS)
        identity = str(experiment.experiment_id)
        at_once = _AT_ONCE if target.is_server else 1
        current = synchronise(client, identity, plan["campaign"], runs, at_once=at_once)
        synchronise_report(client, identity, plan["campaign"], layout, runs)
        page = provide_dashboard(client, experiment, varying_levers(plan))
    return {
        "target": target.public,
        "experiment": plan["study"],
        "experiment_id": identity,
        "page": page,
        "runs": current,
    }
