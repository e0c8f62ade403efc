"""The plan, and what every rule file asks of it."""

import gc
import sys
from pathlib import Path

sys.path.insert(0, str(Path(workflow.basedir) / "workflow/scripts"))

from sgmatrix.core.layout import Layout
from sgmatrix.core.version import HARNESS_VERSION
from sgmatrix.present.quoting import quote_interpreters
from sgmatrix.present.opening import open_session

# A graph of thousands of jobs is millions of objects that live to the end; looking for garbage
# among them at the usual pace takes a sixteenth of a dry run (tests/perf/plan.py).
gc.freeze()
gc.set_threshold(200_000, 50, 1000)

quote_interpreters()

# Reads the campaign strictly (Snakemake's own loader would merge files and take `NO` for
# false), expands it, and refuses it in one line per problem. Touches nothing on disk.
SESSION = open_session(workflow)
PLAN = SESSION.plan
LAYOUT = SESSION.layout
LAUNCHES = {(one.cell, one.launch): one for one in PLAN.launches}


pathvars:
    results=str(LAYOUT.root),
    logs=str(LAYOUT.root / "logs"),


wildcard_constraints:
    cell=r"[A-Za-z0-9][A-Za-z0-9._-]*",
    launch=r"\d+(-noise)?(-extra\d+)?",
    load=r"(c\d+|r[0-9.]+)-[A-Za-z0-9-]+",


# One launch begins at a time, and at most one more waits for the lease of the node.
workflow.global_resources.setdefault("launch_slot", 1)
if SESSION.campaign.node.gpus:
    workflow.global_resources.setdefault("gpu", SESSION.campaign.node.gpus)


def campaign_root(wildcards):
    return str(LAYOUT.root)


def planned_digest(wildcards):
    """What the campaign plans, also while one cell of it is repeated alone."""
    return SESSION.planned


def copied_history(wildcards):
    """What was copied from where it was measured."""
    return SESSION.history()


def ledger_digest(wildcards):
    return SESSION.ledger_digest


def launch_of(wildcards):
    return LAUNCHES[wildcards.cell, wildcards.launch]


def attempt_of(wildcards):
    """The attempt asked for: a new one makes Snakemake repeat the launch whole."""
    return launch_of(wildcards).attempt


def key_of(wildcards):
    """Another key is another cell, whatever its name."""
    return PLAN.cells[wildcards.cell].key


def point_key_of(wildcards):
    return next(
        p.key for p in launch_of(wildcards).points if p.load_id == wildcards.load
    )


def earlier_rounds(wildcards):
    """What decides whether a launch is needed: the rounds of its comparison before it."""
    condition = launch_of(wildcards).condition
    if condition is None:
        return []
    name = "<results>/cells/{}/launch-{}/teardown.json"
    return [ancient(name.format(*one)) for one in condition.after]


def place_in_plan(wildcards):
    """Priority of a launch: the plan's order, which interleaves the arms of an A/B."""
    return len(PLAN.launches) - launch_of(wildcards).position


def before_place(wildcards):
    """Priority of the later steps: a running launch ends before the next server starts."""
    return len(PLAN.launches) + place_in_plan(wildcards)


def previous_step(wildcards):
    """The chain in a launch: warm-up, then its points from the lowest load up."""
    loads = [p.load_id for p in launch_of(wildcards).points]
    before = loads.index(wildcards.load) - 1
    folder = "<results>/cells/{cell}/launch-{launch}/"
    step = "warmup.json" if before < 0 else f"points/{loads[before]}.json"
    return (folder + step).format(cell=wildcards.cell, launch=wildcards.launch)


def points_of(wildcards):
    folder = f"<results>/cells/{wildcards.cell}/launch-{wildcards.launch}/points"
    return [f"{folder}/{p.load_id}.json" for p in launch_of(wildcards).points]


def campaign_files(wildcards):
    """What a campaign is run for."""
    before_looking()
    return ["<results>/report/index.html", "<results>/tracking.json"]


def measured_files(wildcards):
    """What only the node can make."""
    before_looking()
    return [
        *node_record(wildcards),
        *final_records(wildcards),
        *probe_records(wildcards),
    ]


def before_looking():
    """Withdraw what Snakemake must not find; called when it first builds the graph."""
    if workflow.is_main_process and workflow.executor_plugin and not workflow.dryrun:
        SESSION.forget_stale_records()
    if workflow.is_main_process and workflow.dryrun:
        SESSION.warn()


def tracked_files(wildcards):
    """What is tracked comes first, and the report before MLflow, which may be down.

    The target `track` tells MLflow what is in the history now, and measures nothing.
    """
    if "track" not in workflow.dag_settings.targets:
        return ["<results>/datasets/points.parquet", "<results>/report/index.html"]
    if workflow.is_main_process and workflow.executor_plugin and not workflow.dryrun:
        (LAYOUT.root / "tracking.json").unlink(missing_ok=True)
    return []


def probed_reference(wildcards):
    """The probe whose texts this one is to judge; nothing where it judges its own."""
    probe = next(p for p in PLAN.probes if p.cell == wildcards.cell)
    if probe.reference in (None, probe.cell):
        return []
    return [f"<results>/cells/{probe.reference}/probe/probe.json"]


def probe_attempt_of(wildcards):
    return next(p.attempt for p in PLAN.probes if p.cell == wildcards.cell)


def profile_attempt_of(wildcards):
    return next(p.attempt for p in PLAN.profiles if p.cell == wildcards.cell)


def profiles_made(wildcards):
    """A new profile makes the report anew; it measures nothing."""
    return SESSION.profiles_made()


def profile_record(wildcards):
    """The profile that `--config cell=<cell>` asks for; refused where it names none."""
    real = workflow.executor_plugin and not workflow.dryrun
    cell = SESSION.profiled_cell(forget=workflow.is_main_process and real)
    return f"<results>/cells/{cell}/profile/profile.json"


def probe_records(wildcards):
    return [f"<results>/cells/{one.cell}/probe/probe.json" for one in PLAN.probes]


def node_record(wildcards):
    """What was measured of the node; nothing where nothing is launched and it never was."""
    return ["<results>/node-probe.json"] if SESSION.has_node_record() else []


def final_records(wildcards):
    if SESSION.home:  # what is there is there; no job of this machine makes more of it
        return ["<results>/home.json"]
    return [
        f"<results>/cells/{one.cell}/launch-{one.launch}/teardown.json"
        for one in PLAN.launches
    ]


def model_files(wildcards):
    """A recipe's model is made by the workflow; any other is the user's.

    Asked while the graph is built, before Snakemake looks which files are there.
    """
    if workflow.is_main_process and workflow.executor_plugin and not workflow.dryrun:
        SESSION.forget_started(launch_of(wildcards))
    return probe_model_files(wildcards)


def probe_model_files(wildcards):
    return (
        [f"results/models/{PLAN.model.recipe}/config.json"] if PLAN.model.recipe else []
    )
