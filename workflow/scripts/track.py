"""Rule `track`: tell MLflow of every finished launch that it does not know yet."""

from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.joblog import job_log
from sgmatrix.core.layout import Layout

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    with job_log(job.log[0]):
        from sgmatrix.present.tracking.track import track

        track(Layout(Path(job.params.root)), job.params.asked, Path(job.output[0]))


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 - Snakemake injects it
