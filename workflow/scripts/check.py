"""Rule `check`: end as failed, naming the cells that did, or say in one line that all is well."""

from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.joblog import job_log
from sgmatrix.core.layout import Layout

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    with job_log(job.log[0]):
        from sgmatrix.present.check import check

        points = Path(job.input.points)
        verdict = check(Layout(points.parents[1]), points)
    print(verdict)  # behind the log: on the terminal


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 - Snakemake injects it
