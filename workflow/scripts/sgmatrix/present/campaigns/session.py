"""An invocation that sets two finished campaigns side by side: no campaign of its own, no lock.

It stands where a campaign's `Session` does, with an empty plan; the rules of cells have nothing to
do. Reading it opens two `plan.json`; points are read once jobs are really going to run.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import Layout
from sgmatrix.present.options import Options
from sgmatrix.present.refusals import check_place, refuse, unwritable

_RESULTS = Path("results")
HOW = "--config base=<campaign> other=<campaign>"


class CampaignsSession:
    """The two campaigns that this invocation compares."""

    planned = ledger_digest = ""
    home = False

    def __init__(self, options: Options) -> None:
        """Find both campaigns.

        Raises:
            SgmatrixError: `config_rejected` where one is not there, or both are one.
        """
        self.options = options
        named = (options.base, options.other)
        if None in named:
            given = "base" if named[1] is None else "other"
            raise SgmatrixError(
                "config_rejected", f"--config names {given} alone", fix=f"snakemake compare {HOW}"
            )
        self.layouts = [Layout(_folder(str(name))) for name in named]
        if self.layouts[0].root.resolve() == self.layouts[1].root.resolve():
            raise SgmatrixError(
                "config_rejected",
                f"base and other are both {self.layouts[0].root}",
                fix="name two campaigns, or two folders of results",
            )
        self.labels = _labels(self.layouts)
        self.layout = Layout(_RESULTS / "compare" / "--".join(self.labels))
        check_place(self.layout.root)
        self.campaign = SimpleNamespace(node=SimpleNamespace(gpus=0))
        self.node_probe = SimpleNamespace(gpus=0, asked={})
        self.plan = SimpleNamespace(
            launches=(), cells={}, probes=(), profiles=(), model=SimpleNamespace(recipe=None)
        )

    def start(self, targets: Iterable[str]) -> None:
        """Compare, print, and write; or refuse in one line."""
        if set(targets) != {"compare"}:
            self._refuse_target()
        try:
            from sgmatrix.present.campaigns.write import compare_campaigns  # pulls pyarrow in

            text = compare_campaigns(
                self.layouts, self.labels, self.layout.root, self.options.bound_percent
            )
            print(text, flush=True)
        except SgmatrixError as refusal:
            refuse(refusal)
        except OSError as error:
            place = error.filename or self.layout.root
            refuse(unwritable(self.layout.root, f"{place}: {error.strerror}"))

    def _refuse_target(self) -> NoReturn:
        refuse(
            SgmatrixError(
                "config_rejected",
                "base and other are for the target compare, which goes alone",
                fix=f"snakemake compare {HOW}",
            )
        )

    def forget_stale_records(self) -> None:
        """Refuse: this is asked for a campaign's own files."""
        self._refuse_target()

    warn = forget_stale_records

    def has_node_record(self) -> bool:
        return False

    def profiles_made(self) -> list[str]:
        return []

    def profiled_cell(self, **_: bool) -> str:
        """Refuse: there is no campaign whose cell could be profiled."""
        self._refuse_target()

    def finish(self) -> None:
        """Say nothing more."""

    def show(self) -> None:
        """Say nothing more."""


def campaign_names() -> list[str]:
    """Return the campaigns that have results here."""
    return sorted(file.parent.name for file in _RESULTS.glob("*/plan.json"))


def refuse_without_campaigns() -> NoReturn:
    """Refuse the target `compare` where nothing is named."""
    names = ", ".join(campaign_names())
    refuse(
        SgmatrixError(
            "config_rejected",
            "the target compare sets two campaigns side by side, and --config names none",
            fix=HOW + (f"; there are {names}" if names else ""),
        )
    )


def _folder(name: str) -> Path:
    """Return the folder of a campaign's results, named by the campaign or by itself."""
    folder = _RESULTS / name
    if "/" in name or (not folder.is_dir() and Path(name).is_dir()):
        folder = Path(name)
    plan = read_json_or_none(folder / "plan.json")
    if isinstance(plan, dict) and {"campaign", "cells", "launches"} <= plan.keys():
        return folder
    if folder.is_dir():
        raise SgmatrixError(
            "config_rejected",
            f"{folder} has no plan.json that can be read, so it is no campaign's results",
            fix="name a folder as results/<campaign>, or run the campaign first",
        )
    names = campaign_names()
    near = difflib.get_close_matches(name, names, n=3) or names[:10]
    raise SgmatrixError(
        "config_rejected",
        f"no results of a campaign {name}: {folder} is not there",
        fix=f"one of {', '.join(near)}" if near else "run the campaign first, or name a folder",
    )


def _labels(layouts: list[Layout]) -> list[str]:
    """Return the campaigns' names; where they are the same, what tells their folders apart."""
    names = [str((read_json_or_none(one.plan) or {})["campaign"]) for one in layouts]
    if names[0] == names[1]:
        parts = [list(one.root.resolve().parts) for one in layouts]
        while parts[0] and parts[1] and parts[0][0] == parts[1][0]:
            parts = [one[1:] for one in parts]
        while len(parts[0]) > 1 and len(parts[1]) > 1 and parts[0][-1] == parts[1][-1]:
            parts = [one[:-1] for one in parts]
        names = ["-".join(one) or name for one, name in zip(parts, names, strict=True)]
    return [re.sub(r"[^A-Za-z0-9._-]", "_", name) for name in names]
