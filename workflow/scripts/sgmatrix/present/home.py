"""An invocation where nothing can be measured: what was measured elsewhere is told from its copy.

It stands where a campaign's `Session` does, with an empty plan. What was planned is what
`plan.json` says, which stays as it was copied: the same records give the same bytes as there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.hashing import digest
from sgmatrix.core.layout import Layout
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.ledger import Entry
from sgmatrix.present.campaign_lock import is_running, take_lock
from sgmatrix.present.campaigns.session import refuse_without_campaigns
from sgmatrix.present.options import Options
from sgmatrix.present.profile_view import profiles_made
from sgmatrix.present.refusals import refuse, unwritable
from sgmatrix.present.session import Session

HOME_VARIABLE = "SGMATRIX_HOME"
"""Tells the jobs of an invocation that it is one at home, and why."""
_MEASURING = {"measure", "profile", "node_probe"}
_PLANNING = {"plan", "ceiling"}


def why_home(
    campaign: Campaign, plan: Mapping[str, Any] | None, options: Options, project: Path
) -> str | None:
    """Return why an invocation is one at home; None where it measures.

    A machine without the engine is no place to measure. One without GPUs may be: the head of a
    cluster has none.

    Args:
        campaign: as its file says.
        plan: what `plan.json` says; None: nothing was measured anywhere.
        options: `home` asks for it.
        project: the folder that relative paths of engines count from.

    Raises:
        SgmatrixError: `config_rejected` where it is asked for and there is nothing to tell of.
    """
    if campaign.rerun is not None or plan is None:
        if options.home:
            raise SgmatrixError(
                "config_rejected",
                f"--config home=true, and results/{campaign.campaign}/plan.json is not there"
                if plan is None
                else "--config home=true, and the file repeats a cell",
                fix="copy results/<campaign> from where it was measured, and name its campaign",
            )
        return None
    if options.home:
        return "--config home=true"
    for name in sorted({cell["engine"] for cell in plan["cells"].values()}):
        engine = campaign.engines.get(name)
        if engine is None or not (project / Path(engine.python).expanduser()).is_file():
            return f"engines.{name} is not there"
    return None


def planned_digest(record: Mapping[str, Any]) -> str:
    """Return the digest of all launches and points of a `plan.json`."""
    planned = [
        (x["cell"], x["launch"], [p["key"] for p in x["points"]]) for x in record["launches"]
    ]
    return digest(sorted(planned))


@dataclass
class HomeSession:
    """The campaign whose copied records this invocation tells of."""

    campaign: Any
    layout: Layout
    options: Options
    why: str
    """Why nothing is measured."""
    recorded: Mapping[str, Any]
    """What `plan.json` says."""
    full: Callable[[], Session]
    """Expands the campaign file as it is now, as far as this machine can."""
    ledger: tuple[Entry, ...] = ()
    ledger_digest: str = ""
    plan: Any = field(
        default_factory=lambda: SimpleNamespace(
            launches=(), cells={}, probes=(), profiles=(), model=SimpleNamespace(recipe=None)
        )
    )
    node_probe: Any = field(default_factory=lambda: SimpleNamespace(gpus=0, asked={}))
    _lock: IO[str] | None = None
    _shown: bool = False

    home = True

    @property
    def planned(self) -> str:
        return planned_digest(self.recorded)

    def history(self) -> str:
        """Return a digest of what was measured: names and sizes of what only grows."""
        root = self.layout.root
        files = sorted(
            (path.relative_to(root).as_posix(), path.stat().st_size)
            for folder in (root / "history", root / "cells")
            for path in folder.rglob("*")
            if path.is_file()
        )
        told = [read_json_or_none(path) for path in (self.layout.plan, self.layout.node_probe)]
        return digest([files, told])

    def forget_stale_records(self) -> None:
        """Have the tables made anew unless they are of the records that lie here now."""
        record = read_json_or_none(self.layout.home)
        if record != {"history": self.history()} and not is_running(self.layout):
            # Snakemake misses an intermediate file only where what is made of it is missing too
            for made in (self.layout.home, *self.layout.made_of_records()):
                made.unlink(missing_ok=True)

    def warn(self) -> None:
        """Say nothing of the plan: it was judged where it was measured."""

    def has_node_record(self) -> bool:
        return False

    def profiles_made(self) -> list[str]:
        return profiles_made(self.layout, self.recorded["cells"])

    def profiled_cell(self, **_: bool) -> str:
        self._refuse_measuring()
        return ""

    def start(self, targets: Iterable[str]) -> None:
        """Take the campaign's lock and say where this is; or refuse in one line."""
        asked = set(targets)
        if asked & _PLANNING:
            self.full().start(targets)
            return
        if asked & _MEASURING:
            self._refuse_measuring()
        if "compare" in asked:
            refuse_without_campaigns()
        try:
            self.layout.events.parent.mkdir(parents=True, exist_ok=True)
            self._lock = take_lock(self.layout, self.recorded["campaign"])
            if asked == {"ledger"}:
                from sgmatrix.present.ledger_proposals import proposed  # pulls pyarrow in

                print(proposed(self.layout, self.recorded["campaign"], self.ledger))
                return
        except SgmatrixError as refusal:
            refuse(refusal)
        except OSError as error:
            place = error.filename or self.layout.root
            refuse(unwritable(self.layout.root, f"{place}: {error.strerror}"))
        self._shown = True
        print(
            f"{self.recorded['campaign']}: nothing is measured here ({self.why}); tables, tracking "
            "and report are made of the records that are there",
            file=sys.stderr,
            flush=True,
        )

    def _refuse_measuring(self) -> None:
        refuse(
            SgmatrixError(
                "engine_missing",
                f"nothing can be measured here: {self.why}",
                fix="run snakemake measure where the engine and the GPUs are",
            )
        )

    def finish(self) -> None:
        """Print how the campaign stands."""
        if self._shown:
            self.show()

    def show(self) -> None:
        """Print the table of the cells and where everything is."""
        from sgmatrix.present.summary import print_summary  # pulls pyarrow in

        print_summary(self.layout)


def tell_jobs(why: str) -> None:
    """Let the jobs of this invocation know that it is one at home."""
    os.environ[HOME_VARIABLE] = json.dumps(why)


def told_to_job() -> str | None:
    """Return why the invocation that this job is of measures nothing; None where it does."""
    return json.loads(os.environ[HOME_VARIABLE]) if HOME_VARIABLE in os.environ else None
