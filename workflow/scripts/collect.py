"""Rule `collect`: the history of all attempts, as tables."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.joblog import job_log
from sgmatrix.core.layout import Layout

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    terminal = sys.stderr
    with job_log(job.log[0]):
        from sgmatrix.dataset.collect import Tables, collect

        tables = Tables(**{name: Path(path) for name, path in job.output.items()})
        for one in collect(Layout(Path(job.params.root)), tables):
            print(one)
            print(one, file=terminal, flush=True)


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 - Snakemake injects it
