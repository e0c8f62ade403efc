"""Rule `home`: note which records the tables are made of, where they were copied from elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.files import write_json
from sgmatrix.core.joblog import job_log

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    with job_log(job.log[0]):
        write_json(Path(job.output[0]), {"history": job.params.history})


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 - Snakemake injects it
