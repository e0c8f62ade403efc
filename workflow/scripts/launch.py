"""Rule `launch`: start the server of one cell under a warden; its record says how it went."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sgmatrix.core.files import publish, read_json, read_json_or_none
from sgmatrix.core.joblog import job_log
from sgmatrix.core.layout import Layout
from sgmatrix.node.launch import (
    disturbance_stops_campaign,
    planned_launch,
    refuse_when_orphaned,
    run_launch,
    skip_launch,
)

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def not_needed(layout: Layout, cell: str, launch: str) -> str | None:
    """Return why a launch need not run: its comparison is decided by the rounds before it."""
    plan = read_json(layout.plan)
    planned = planned_launch(plan, cell, launch)
    if not planned.get("condition"):
        return None
    # numpy comes with it: most launches have no condition
    from sgmatrix.analysis.compared import planned_keys, why_not_needed

    keys = planned_keys(plan)

    def find(cell: str, launch: str, load: str) -> "dict[str, Any] | None":
        point = read_json_or_none(layout.launch(cell, launch) / "points" / f"{load}.json")
        if point is None or point.get("point_key") != keys.get((cell, launch, load)):
            return None  # of another server or another load: it is about to be measured again
        axes = plan["cells"][cell]["axes_text"]
        return {**{f"axis_{name}": text for name, text in axes.items()}, **point}

    return why_not_needed(plan["comparisons"], planned, find)


def main(job: "Snakemake") -> None:
    with job_log(job.log[0]), disturbance_stops_campaign():
        layout = Layout.of(Path(job.output[0]))
        cell, launch = job.wildcards.cell, job.wildcards.launch
        why = not_needed(layout, cell, launch)
        if why is None:
            record = run_launch(layout, cell, launch)
        else:
            record = skip_launch(layout, cell, launch, why)
        folder = Path(record["attempt_dir"])
        refuse_when_orphaned()
        if why is None:  # the record of a launch that ran is not covered by one that did not
            publish(folder / "cell.yaml", layout.cell(cell) / "cell.yaml")
        publish(folder / "server.json", Path(job.output[0]))


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 - Snakemake injects it
