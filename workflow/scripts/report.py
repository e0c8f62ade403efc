"""Rule `report`: one HTML file that a reader needs nothing else for, and its points as CSV."""

from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.joblog import job_log
from sgmatrix.core.layout import Layout

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    with job_log(job.log[0]):
        from sgmatrix.present.report import write_report

        write_report(
            Layout(Path(job.params.root)),
            Path(job.input.points),
            html=Path(job.output.html),
            csv=Path(job.output.csv),
        )


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 - Snakemake injects it
