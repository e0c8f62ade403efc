"""One invocation of Snakemake on one campaign: read, refuse, lock, show, and tell the end.

The Snakefile holds one `Session`. Reading changes nothing on disk, so that a dry run is one;
`start` is called when jobs are really going to run.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from sgmatrix.analysis.advice.piece import Advice
from sgmatrix.analysis.ledger.concern import Finding, findings
from sgmatrix.core.errors import Refusal, SgmatrixError
from sgmatrix.core.facts.files import HARDWARE, hardware_file
from sgmatrix.core.files import read_json_or_none, write_json, write_text
from sgmatrix.core.layout import Layout
from sgmatrix.core.recorded import recorded_facts
from sgmatrix.dataset.nodes import newest_node
from sgmatrix.node import preflight, proc
from sgmatrix.node.facts import node_facts
from sgmatrix.node.launch import OWNER_VARIABLE, STOPPING_VARIABLE
from sgmatrix.node.time_limit import set_limit
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.engines import engine_facts
from sgmatrix.plan.inspection import AxisAudit, audit_axes, provide_copies, refused_cells
from sgmatrix.plan.launches import Launch
from sgmatrix.plan.ledger import Entry
from sgmatrix.plan.node_probe import PlannedNodeProbe
from sgmatrix.plan.plan import Plan, plan_record
from sgmatrix.present.campaign_lock import is_running, take_lock
from sgmatrix.present.campaigns.session import refuse_without_campaigns
from sgmatrix.present.differences import differences
from sgmatrix.present.ledger_view import warning_lines
from sgmatrix.present.options import Options
from sgmatrix.present.plan_view import audit_lines, plan_text
from sgmatrix.present.profile_view import profile_text, profiles_made
from sgmatrix.present.refusals import refuse, unwritable
from sgmatrix.present.stale import forget_stale_records, forget_started, launches_to_come
from sgmatrix.present.terminal.progress import Progress


@dataclass
class Session:
    """The campaign that this invocation runs."""

    campaign: Campaign
    plan: Plan
    layout: Layout
    options: Options
    planned: str
    """Digest of all launches and points that `plan.json` will hold."""
    on_this_node: bool
    """Whether jobs run on the machine of the main process."""
    project: Path
    """The folder that relative paths of engines, models and facts count from."""
    node_probe: PlannedNodeProbe
    ledger: tuple[Entry, ...] = ()
    """Of the main process; a job reads what the plan says of it."""
    ledger_digest: str = ""
    """Of the file; the report is made anew when it changes."""
    _lock: IO[str] | None = None
    _progress: Progress | None = None
    _marker: Path | None = None
    _handlers: dict[int, Any] = field(default_factory=dict)
    _warned: bool = False
    _profiled: bool = False
    """Whether the target `profile` was asked for."""
    _measures: bool = False
    """Whether the target `measure` was asked for, alone."""

    home = False

    def forget_stale_records(self) -> None:
        """Withdraw the published records of launches that are to be done again."""
        if not is_running(self.layout):
            forget_stale_records(self.plan, self.layout, self.node_probe)

    def has_node_record(self) -> bool:
        """Tell whether the node was probed, or is going to be."""
        return self.layout.node_probe.exists() or launches_to_come(self.plan, self.layout)

    def forget_started(self, launch: Launch) -> None:
        """Withdraw what a launch that was interrupted had published of its running server."""
        if not is_running(self.layout):
            forget_started(launch, self.layout)

    def profiled_cell(self, *, forget: bool) -> str:
        """Return the cell that the target `profile` is for; refuse in one line where there is none.

        Args:
            forget: withdraw a published record that is to be made again.
        """
        if not self.plan.profiles:
            cells = ", ".join(self.plan.cells)
            refuse(
                SgmatrixError(
                    "config_rejected",
                    "the target profile profiles one cell, and --config names none",
                    fix=f"--config cell=<cell>, one of {cells}",
                )
            )
        (planned,) = self.plan.profiles
        self._profiled = True
        if forget and not planned.is_done(self.layout) and not is_running(self.layout):
            record = self.layout.launch(planned.cell, planned.launch) / "profile.json"
            record.unlink(missing_ok=True)
        return planned.cell

    def profiles_made(self) -> list[str]:
        """Return which profiles the report is to show, so that a new one makes it anew."""
        return profiles_made(self.layout, self.plan.cells)

    def start(self, targets: Iterable[str]) -> None:
        """Take the campaign's lock, write the plan, and show progress; or refuse in one line.

        Where only the plan, its ceilings or entries for the ledger were asked for, they are printed
        and nothing else is done.
        """
        asked = set(targets)
        self._measures = asked == {"measure"}
        try:
            if asked == {"plan"}:
                print(
                    plan_text(
                        self.plan, self.layout, self._inspect(), self._advice(), self._findings()
                    )
                )
            elif asked == {"ceiling"}:
                from sgmatrix.present.physics import ceilings_text  # pulls pyarrow in

                print(ceilings_text(self.campaign, self.plan, self.layout, self._facts))
            elif asked == {"ledger"}:
                self._propose()
            elif "compare" in asked:
                refuse_without_campaigns()
            else:
                self._start()
        except SgmatrixError as refusal:
            refuse(refusal)
        except OSError as error:
            place = error.filename or self.layout.root
            refuse(unwritable(self.layout.root, f"{place}: {error.strerror}"))

    def _start(self) -> None:
        if absent := self.plan.absences():
            raise Refusal("engine_missing", absent, fix="run it on the machine that has them")
        self.layout.events.parent.mkdir(parents=True, exist_ok=True)
        self._lock = take_lock(self.layout, self.plan.campaign)
        audits = self._inspect()
        self._compare_with_record()
        if self.on_this_node:  # elsewhere the launch job asks the same, on its own node
            preflight.check_memory(max(c.min_free_memory_mb for c in self.plan.cells.values()))
            if self.campaign.server.port != "auto":
                preflight.check_port(self.campaign.server.port)
        former = read_json_or_none(self.layout.plan)
        record = plan_record(self.plan, self.campaign, former)
        record["facts"] = self._facts
        advice = self._advice()
        record["node_probe"] = asdict(self.node_probe)
        # one cell has no axes to judge: what the campaign's plan said of them stays
        repeated = self.campaign.rerun is not None and former is not None
        found = self._findings()
        told = {
            "warnings": [*audit_lines(audits), *warning_lines(found)],
            "ledger": [one.record() for one in found],
            "advice": [one.record() for one in advice],
            "references": self._references(),
        }
        record |= {key: former.get(key, []) if repeated else told[key] for key in told}
        write_json(self.layout.plan, record)
        me = proc.identify(os.getpid())
        assert me is not None
        for old in self.layout.stopping.parent.glob(f"{self.layout.stopping.name}*"):
            old.unlink(missing_ok=True)
        # of this invocation alone: a job that a killed one has left behind may still write its own
        marker = self.layout.stopping.with_name(f"stopping-{me.pid}-{me.ticks}").absolute()
        os.environ[STOPPING_VARIABLE] = str(marker)
        self._marker = marker
        os.environ[OWNER_VARIABLE] = json.dumps(me.record())
        if self.options.time_limit_s is not None:
            set_limit(self.options.time_limit_s)
        self._mark_on_signal(marker)
        if self._profiled:
            self._progress = Progress(replace(self.plan, launches=()), self.layout)
        else:
            text = plan_text(self.plan, self.layout, audits, advice, found)
            print(text, file=sys.stderr, flush=True)
            self._progress = Progress(self.plan, self.layout)
        self._progress.start()

    @cached_property
    def _facts(self) -> dict[str, Any]:
        from sgmatrix.present.physics import facts_for  # pulls pyarrow in

        return facts_for(self.campaign, self.plan, self.project, here=self.on_this_node)

    def _advice(self) -> list[Advice]:
        from sgmatrix.present.physics import advice_for  # pulls pyarrow in

        return advice_for(self.campaign, self.plan, self.layout, self._facts, self.project)

    def _references(self) -> list[dict[str, Any]]:
        from sgmatrix.present.physics import references_for  # pulls pyarrow in

        return [one.record() for one in references_for(self.campaign, self.project)]

    def warn(self) -> None:
        """Print, once, which cells repeat what is ruled out: all that a dry run says of a plan."""
        if not self._warned:
            self._warned = True
            for line in warning_lines(self._findings()):
                print(line, file=sys.stderr, flush=True)

    def _findings(self) -> tuple[Finding, ...]:
        """Return what the ledger has on this campaign."""

        def node() -> Mapping[str, Any]:
            if (hardware := self.campaign.node.hardware) is not None:
                name = hardware_file(self.project / HARDWARE, hardware).name
                return {"gpus": [{"name": name}] * self.campaign.node.gpus}
            device = next(iter(self.plan.cells.values())).device
            here = node_facts(device) if self.on_this_node else {}
            return here if here.get("gpus") is not None else newest_node(self.layout)

        return findings(self.ledger, self.plan, node)

    def _propose(self) -> None:
        """Print the ledger entries that the finished comparisons come to; write nothing."""
        from sgmatrix.present.ledger_proposals import proposed  # pulls pyarrow in

        print(proposed(self.layout, self.plan.campaign, self.ledger))

    def _inspect(self) -> list[AxisAudit]:
        """Ask the engines about the plan; refuse cells that they would refuse."""
        provide_copies(self.plan)
        if problems := list(refused_cells(self.plan)):
            raise Refusal("config_rejected", problems, fix="see the flags of that engine's version")
        return audit_axes(self.campaign, self.plan)

    def _compare_with_record(self) -> None:
        """Say what differs now from when the cell that is repeated was measured."""
        recorded = self.campaign.rerun.recorded if self.campaign.rerun else None
        if recorded is None:
            return
        cell = next(iter(self.plan.cells.values()))
        engines = {name: engine_facts(engine) for name, engine in self.plan.engines.items()}
        node = node_facts(cell.device) if self.on_this_node else recorded.get("node", {})
        now = recorded_facts(vars(cell), engines, self.plan.client["id"], node)
        lines = list(differences(recorded, now))
        if lines and self.options.strict:
            raise Refusal("not_the_same", lines, fix="go on without --config strict=true")
        for line in lines or ["nothing differs from the record of this cell"]:
            print(f"differs: {line}" if lines else line, file=sys.stderr)

    def _mark_on_signal(self, marker: Path) -> None:
        """Let a launch that waits for its turn see that Snakemake is about to stop.

        Snakemake itself would wait for that job, and the job for a server that nobody uses.
        """

        def handler(number: int, frame: Any) -> None:
            with contextlib.suppress(OSError):
                write_text(marker, f"the campaign was stopped by signal {number}\n")
            former = self._handlers[number]
            if callable(former):
                former(number, frame)

        for number in (signal.SIGINT, signal.SIGTERM):
            self._handlers[number] = signal.signal(number, handler)

    def finish(self) -> None:
        """Print how the campaign stands, and whether a repeated cell agrees with before."""
        if self._progress is None:
            return
        self._progress.stop()
        if self._marker is not None and self._marker.exists():
            why = self._marker.read_text(encoding="utf-8").strip()
            print(f"stopped: {why}; the next snakemake goes on from here", file=sys.stderr)
        if self.campaign.rerun is not None:
            from sgmatrix.present.repeat import agreement_lines, store_agreements

            for one in store_agreements(self.layout, self.plan):
                name = f"{one.cell}, launch {one.launch}"
                print(f"\nagreement of {name}, with before:", file=sys.stderr)
                print("\n".join(agreement_lines(one.points)), file=sys.stderr)
        self.show()

    def show(self) -> None:
        """Print the table of the cells and where everything is; or the profile asked for."""
        if self._profiled:
            print(profile_text(self.layout, self.plan.profiles[0].cell), flush=True)
            return
        from sgmatrix.present.summary import print_summary  # pulls pyarrow in: not for a dry run

        print_summary(self.layout)
        if self._measures:
            print(
                f"\nmeasured; copy {self.layout.root} to where the report is to be made, and run "
                "snakemake there",
                file=sys.stderr,
                flush=True,
            )
