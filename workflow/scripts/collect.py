"""Rule `collect`: the history of all attempts, as tables."""

from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.joblog import job_log
from sgmatrix.core.layout import Layout

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    with job_log(job.log[0]):
        from sgmatrix.dataset.collect import collect

        out = job.output
        tables = (Path(out.points), Path(out.requests), Path(out.telemetry), Path(out.experts))
        collect(Layout(Path(job.params.root)), *tables)


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 - Snakemake injects it
