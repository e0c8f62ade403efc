"""Rule `model`: make a model that is small enough to be made by the workflow."""

from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.joblog import job_log
from sgmatrix.plan.recipes import RECIPES

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    with job_log(job.log[0]):
        RECIPES[job.wildcards.recipe].write(Path(job.output.config).parent)


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 - Snakemake injects it
