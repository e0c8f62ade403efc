"""Rule `node_probe`: measure memory and links of the node, before anything is launched on it."""

from pathlib import Path
from typing import TYPE_CHECKING

from sgmatrix.core.files import write_json
from sgmatrix.core.joblog import job_log
from sgmatrix.core.layout import Layout
from sgmatrix.load.node_probe import probe_node, told
from sgmatrix.node.launch import disturbance_stops_campaign, refuse_when_orphaned

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    with job_log(job.log[0]), disturbance_stops_campaign():
        record = probe_node(Layout(Path(job.output.record).parent))
        print("\n".join(told(record)))
        refuse_when_orphaned()
        write_json(Path(job.output.record), record)


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 - Snakemake injects it
