"""Rule `benchmark`: offer one load point to a running server and record what happened."""

from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.files import publish, read_json
from sgmatrix.core.joblog import job_log
from sgmatrix.core.layout import Layout
from sgmatrix.load.point import run_point
from sgmatrix.load.step import Step
from sgmatrix.node.launch import disturbance_stops_campaign, refuse_when_orphaned

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    with job_log(job.log[0]), disturbance_stops_campaign():
        layout = Layout.of(Path(job.output[0]))
        server = read_json(Path(job.input.server))
        step = Step(layout, job.wildcards.cell, job.wildcards.launch, server)
        # A fault of the server is a record, not an exception: the campaign goes on.
        run_point(step, job.wildcards.load, read_json(Path(job.input.warmup))["reason"])
        points = step.folder / "points"
        refuse_when_orphaned()
        publish(points / f"{job.wildcards.load}.requests.parquet", Path(job.output.requests))
        publish(points / f"{job.wildcards.load}.json", Path(job.output.record))


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 - Snakemake injects it
