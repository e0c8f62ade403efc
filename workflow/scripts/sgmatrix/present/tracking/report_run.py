"""The campaign's report as one run of its own, whose artifact is the page."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.layout import Layout
from sgmatrix.present.tracking.runs import Run

if TYPE_CHECKING:
    from mlflow import MlflowClient


def synchronise_report(
    client: MlflowClient, experiment: str, campaign: str, layout: Layout, runs: Sequence[Run]
) -> None:
    """Make the report's run hold the page as it is on disk; nothing where there is none.

    There is one such run per campaign, whose artifact is replaced: a page is made of the history,
    which is in MLflow by itself. The digest is set last.
    """
    page = layout.root / "report" / "index.html"
    if not page.is_file():
        return
    digest = hashlib.sha256(page.read_bytes()).hexdigest()[:16]
    found = client.search_runs(
        [experiment],
        f"tags.bench.campaign = '{campaign}' AND tags.bench.kind = 'report'",
        max_results=1,
        order_by=["attributes.start_time ASC", "attributes.run_id ASC"],
    )
    if found and found[0].data.tags.get("bench.digest") == digest:
        return
    if found:
        run_id = found[0].info.run_id
    else:
        tags = {
            "bench.campaign": campaign,
            "bench.kind": "report",
            "mlflow.note.content": f"The report of campaign {campaign}: artifact report.html",
            "mlflow.source.name": "sglang-matrix",
            "mlflow.source.type": "PROJECT",
        }
        end_ms = max((run.end_ms for run in runs), default=0)
        made = client.create_run(
            experiment, start_time=end_ms, tags=tags, run_name=f"{campaign} report"
        )
        run_id = made.info.run_id
    with tempfile.TemporaryDirectory() as folder:
        shutil.copyfile(page, Path(folder) / "report.html")
        client.log_artifacts(run_id, folder)
    end_ms = max((run.end_ms for run in runs), default=0)
    client.set_terminated(run_id, "FINISHED", end_ms)
    client.set_tag(run_id, "bench.digest", digest)
