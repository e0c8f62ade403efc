"""Rule `teardown`: stop the server, wait for the proof that it is gone, close the record."""

from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.files import publish, read_json
from sgmatrix.core.joblog import job_log
from sgmatrix.core.layout import Layout
from sgmatrix.node.launch import disturbance_stops_campaign, refuse_when_orphaned, run_teardown

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    with job_log(job.log[0]), disturbance_stops_campaign():
        server = read_json(Path(job.input.server))
        run_teardown(Layout.of(Path(job.output[0])), server)
        refuse_when_orphaned()
        publish(Path(server["attempt_dir"]) / "teardown.json", Path(job.output[0]))


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 - Snakemake injects it
