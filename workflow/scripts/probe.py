"""Rule `probe`: count the experts of one cell, and measure its quality, in a launch of its own."""

from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.files import publish
from sgmatrix.core.joblog import job_log
from sgmatrix.core.layout import Layout
from sgmatrix.load.probe.run import run_probe
from sgmatrix.node.launch import disturbance_stops_campaign, refuse_when_orphaned

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    with job_log(job.log[0]), disturbance_stops_campaign():
        folder = run_probe(Layout.of(Path(job.output.record)), job.wildcards.cell)
        refuse_when_orphaned()
        publish(folder / "experts.parquet", Path(job.output.experts))
        publish(folder / "probe.json", Path(job.output.record))


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 - Snakemake injects it
