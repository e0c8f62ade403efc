"""Rule `launch`: start the server of one cell under a warden; its record says how it went."""

from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.files import publish
from sgmatrix.core.joblog import job_log
from sgmatrix.core.layout import Layout
from sgmatrix.node.launch import disturbance_stops_campaign, refuse_when_orphaned, run_launch

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    with job_log(job.log[0]), disturbance_stops_campaign():
        layout = Layout.of(Path(job.output[0]))
        record = run_launch(layout, job.wildcards.cell, job.wildcards.launch)
        folder = Path(record["attempt_dir"])
        refuse_when_orphaned()
        publish(folder / "cell.yaml", layout.cell(job.wildcards.cell) / "cell.yaml")
        publish(folder / "server.json", Path(job.output[0]))


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 - Snakemake injects it
