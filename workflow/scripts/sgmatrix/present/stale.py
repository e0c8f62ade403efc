"""Published records that Snakemake must not take for up to date are withdrawn before it looks.

The history keeps what they said.
"""

from __future__ import annotations

import itertools
from pathlib import Path

from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import Layout
from sgmatrix.plan.launches import Launch
from sgmatrix.plan.node_probe import PlannedNodeProbe
from sgmatrix.plan.plan import Plan


def forget_stale_records(plan: Plan, layout: Layout, node_probe: PlannedNodeProbe) -> None:
    """Withdraw the published records of launches that are to be done again.

    Where Snakemake has no records of its own, because results were copied or `.snakemake` was
    removed: it would then take any file that is there for up to date. And of launches that depend
    on earlier rounds: where those are done again, Snakemake looks at nothing behind them.
    """
    records = Path(".snakemake/metadata")
    known = records.is_dir() and any(records.iterdir())
    stale = [
        layout.launch(one.cell, one.launch)
        for one in plan.launches
        if not one.is_done(layout) and (one.condition is not None or not known)
    ]
    stale += [
        layout.launch(one.cell, one.launch)
        for one in plan.probes
        if not one.is_done(layout) and not known
    ]
    stale = [folder for folder in stale if folder.is_dir()]
    for folder in stale:
        names = ("teardown.json", "points/*", "probe.json")
        for record in itertools.chain(*(folder.glob(name) for name in names)):
            record.unlink()
    probed = read_json_or_none(layout.node_probe)
    if probed is not None and node_probe.is_asked_anew(probed):
        layout.node_probe.unlink()
    if stale:
        # Snakemake misses an intermediate file only where what is made of it is missing too
        for made in layout.made_of_records():
            made.unlink(missing_ok=True)


def forget_started(launch: Launch, layout: Layout) -> None:
    """Withdraw what a launch that was interrupted had published of its running server.

    A Snakemake that ran it as one group, and was killed, has no record of these files; the next
    one would go on from a server that is gone.
    """
    if launch.is_done(layout):
        return
    for name in ("server.json", "warmup.json"):
        path = layout.launch(launch.cell, launch.launch) / name
        path.unlink(missing_ok=True)


def launches_to_come(plan: Plan, layout: Layout) -> bool:
    """Tell whether anything of a plan is still to be launched."""
    launched = all(one.is_done(layout) for one in plan.launches)
    return not (launched and all(one.is_done(layout) for one in plan.probes))
