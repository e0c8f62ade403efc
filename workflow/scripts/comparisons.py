"""Rule `comparisons`: what the campaign's comparisons of cells say, as a table."""

from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.joblog import job_log
from sgmatrix.core.layout import Layout

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    with job_log(job.log[0]):
        from sgmatrix.analysis.comparisons_table import write_comparisons

        write_comparisons(
            Layout(Path(job.params.root)), Path(job.input.points), Path(job.output[0])
        )


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 - Snakemake injects it
