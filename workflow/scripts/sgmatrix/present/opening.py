"""The session of one invocation: which campaign, read strictly, expanded, or refused."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sgmatrix.core.errors import Refusal, SgmatrixError
from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import Layout
from sgmatrix.node import proc
from sgmatrix.node.hardware import machine
from sgmatrix.node.launch import OWNER_VARIABLE
from sgmatrix.plan.campaign import Campaign, read_campaign
from sgmatrix.plan.ledger import ledger_digest, ledger_file, read_ledger
from sgmatrix.plan.node_probe import PlannedNodeProbe, planned_node_probe
from sgmatrix.plan.plan import make_plan, plan_record
from sgmatrix.present.campaigns.session import CampaignsSession
from sgmatrix.present.home import HomeSession, planned_digest, tell_jobs, told_to_job, why_home
from sgmatrix.present.options import Options
from sgmatrix.present.refusals import check_place, refuse
from sgmatrix.present.session import Session
from sgmatrix.present.stale import launches_to_come

AnySession = Session | CampaignsSession | HomeSession

DEFAULT_CAMPAIGN = "config/config.yaml"

_NOISE = (
    "Select jobs to execute",
    "Execute ",
    "Using shell:",
    "Conda environments: ignored",
    "Complete log(s)",  # print_summary is the last word of a campaign
    "Elapsed time",
)


class _Quiet(logging.Filter):
    """Drops Snakemake's lines about its scheduling; says how a finished campaign stands."""

    def __init__(self, session: AnySession) -> None:
        super().__init__()
        self.session = session

    def filter(self, record: logging.LogRecord) -> bool:
        text = str(record.msg)
        if text.startswith("Nothing to be done"):
            print(text, file=sys.stderr, flush=True)
            self.session.show()
            return False
        return not text.startswith(_NOISE)


def open_session(workflow: Any) -> AnySession:
    """Return the session of a Snakemake workflow; on a refusal, print it and exit with 1."""
    try:
        session = _open(workflow)
    except SgmatrixError as refusal:
        refuse(refusal)
    if workflow.is_main_process:
        from snakemake.logging import logger

        logger.addFilter(_Quiet(session))
    elif (
        OWNER_VARIABLE not in os.environ
        or not proc.Identity(**json.loads(os.environ[OWNER_VARIABLE])).alive()
    ):
        # on another machine than the main process: what runs the jobs here owns the servers
        me = proc.identify(os.getpid())
        assert me is not None
        os.environ[OWNER_VARIABLE] = json.dumps(me.record())
    return session


def _open(workflow: Any) -> AnySession:
    settings = workflow.config_settings
    project = Path(workflow.basedir)
    files = list(settings.configfiles) or [project / DEFAULT_CAMPAIGN]
    if len(files) > 1:
        raise SgmatrixError(
            "config_rejected", f"{len(files)} config files given", fix="a campaign is one file"
        )
    try:
        options = Options.model_validate(dict(settings.config or {}))
    except ValidationError as error:
        first = error.errors()[0]
        raise SgmatrixError(
            "config_rejected",
            f"--config {'.'.join(map(str, first['loc']))}: {first['msg']}",
            fix=f"allowed: {', '.join(Options.model_fields)}; the campaign itself is a file",
        ) from None
    if options.base is not None or options.other is not None:
        return CampaignsSession(options)  # reads no campaign file
    options.tracking_target()
    campaign = read_campaign(files[0])
    layout = Layout(Path("results") / campaign.campaign)
    check_place(layout.root)
    former = read_json_or_none(layout.plan)
    if workflow.is_main_process and workflow.local_exec:
        home = why_home(campaign, former, options, project)
    else:
        home = told_to_job()
    if home is None:
        return _full_session(workflow, campaign, files[0], layout, options, former)
    tell_jobs(home)
    ledger = ledger_file(campaign.ledger, project)
    return HomeSession(
        campaign,
        layout,
        options,
        home,
        former or {},
        lambda: _full_session(workflow, campaign, files[0], layout, options, former),
        ledger=read_ledger(ledger) if ledger and workflow.is_main_process else (),
        ledger_digest=ledger_digest(ledger) if ledger else "",
    )


def _full_session(
    workflow: Any,
    campaign: Campaign,
    file: Path,
    layout: Layout,
    options: Options,
    former: dict[str, Any] | None,
) -> Session:
    """Return the session that measures: the campaign expanded, or refused."""
    project = Path(workflow.basedir)
    attempts = None
    if not workflow.is_main_process:  # the main process has decided them
        launches = (former or {"launches": []})["launches"]
        attempts = {(x["cell"], x["launch"]): x["attempt"] for x in launches}
    try:
        ledger = ledger_file(campaign.ledger, project)
        plan = make_plan(
            campaign,
            layout,
            project,
            retry_failed=options.retry == "failed",
            attempts=attempts,
            profile=options.profile(),
        )
    except SgmatrixError as refusal:
        if refusal.code != "config_rejected":
            raise
        problems = getattr(refusal, "problems", [refusal.facts])
        raise Refusal(
            refusal.code, [f"{file}: {text}" for text in problems], fix=refusal.fix
        ) from None
    record = plan_record(plan, campaign, former)
    local = workflow.local_exec
    decided = (former or {}).get("node_probe")
    if decided is not None and not workflow.is_main_process:  # as the attempts are
        node_probe = PlannedNodeProbe(**decided)
    else:
        node_probe = planned_node_probe(
            plan.cells.values(),
            plan.engines,
            read_json_or_none(layout.node_probe),
            node=machine() if local else None,
            launches_to_come=launches_to_come(plan, layout),
            one_cell=campaign.rerun is not None,
            retry_failed=options.retry == "failed",
        )
    return Session(
        campaign,
        plan,
        layout,
        options,
        planned_digest(record),
        local,
        project,
        node_probe,
        ledger=read_ledger(ledger) if ledger and workflow.is_main_process else (),
        ledger_digest=ledger_digest(ledger) if ledger else "",
    )
