"""Rule `profile_cell`: profile one cell in a launch of its own, and tabulate what took the time."""

from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.files import publish
from sgmatrix.core.joblog import job_log
from sgmatrix.core.layout import Layout
from sgmatrix.load.profile.run import run_profile
from sgmatrix.node.launch import disturbance_stops_campaign, refuse_when_orphaned

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    with job_log(job.log[0]), disturbance_stops_campaign():
        from sgmatrix.analysis.profile import write_profile

        folder = run_profile(Layout.of(Path(job.output.record)), job.wildcards.cell)
        write_profile(folder)
        refuse_when_orphaned()
        publish(folder / "profile.json", Path(job.output.record))


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 - Snakemake injects it
