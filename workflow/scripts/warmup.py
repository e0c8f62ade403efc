"""Rule `warmup`: full concurrency waves in the cell's own shapes, kept apart from the results."""

from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.files import publish, read_json
from sgmatrix.core.joblog import job_log
from sgmatrix.core.layout import Layout
from sgmatrix.load.step import Step
from sgmatrix.load.warmup import run_warmup
from sgmatrix.node.launch import disturbance_stops_campaign, refuse_when_orphaned

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    with job_log(job.log[0]), disturbance_stops_campaign():
        layout = Layout.of(Path(job.output[0]))
        server = read_json(Path(job.input.server))
        step = Step(layout, job.wildcards.cell, job.wildcards.launch, server)
        run_warmup(step)
        refuse_when_orphaned()
        publish(step.folder / "warmup.json", Path(job.output[0]))


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 - Snakemake injects it
