"""What the installed engines say of a plan before anything is launched.

Two questions: does the engine accept the arguments of each cell, and does any code of it read
the flag of each axis. Both answers are kept per engine, by a fingerprint of its files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sgmatrix.core.cache import cached
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.cells import axis_flags, digest
from sgmatrix.plan.engine_parser import parse_arguments
from sgmatrix.plan.engines import Installation, fingerprint
from sgmatrix.plan.flag_audit import FlagUse, audit_flags
from sgmatrix.plan.plan import Plan

_HEAD = 2
"""`-m sglang.launch_server` stands before the server's own arguments."""


@dataclass(frozen=True)
class AxisAudit:
    """Whether an engine reads the flags of one axis."""

    axis: str
    engine: str
    version: str
    uses: tuple[FlagUse, ...]

    @property
    def verdict(self) -> str:
        """`read`, or `dead_flag` when no code of the engine reads any of them."""
        return "read" if any(use.reads for use in self.uses) else "dead_flag"


def _audit(engine: Installation, flags: list[str]) -> dict[str, FlagUse]:
    key = digest([fingerprint(engine), flags])

    def ask() -> dict[str, list[object]]:
        uses = audit_flags(Path(engine.package), flags)
        return {flag: [use.declared, list(use.reads)] for flag, use in uses.items()}

    known = cached("flag-audit", key, ask)
    return {flag: FlagUse(flag, known[flag][0], tuple(known[flag][1])) for flag in flags}


def audit_axes(campaign: Campaign, plan: Plan) -> list[AxisAudit]:
    """Return the audit of every axis that has more than one value, per engine that is used.

    An engine without the source of a server (a stand-in) is not audited.
    """
    audits = []
    axes = {axis: values for axis, values in campaign.axes.items() if len(values) > 1}
    for name in sorted({cell.engine for cell in plan.cells.values()}):
        engine = plan.engines[name]
        if not (Path(engine.package) / "srt").is_dir():
            continue
        flags = {axis: axis_flags(axis, values) for axis, values in axes.items()}
        wanted = sorted({flag for some in flags.values() for flag in some})
        uses = _audit(engine, wanted) if wanted else {}
        audits += [
            AxisAudit(axis, name, engine.version, tuple(uses[flag] for flag in some))
            for axis, some in flags.items()
            if some
        ]
    return audits


def refused_cells(plan: Plan) -> Iterator[str]:
    """Yield a line for every cell whose arguments its engine refuses; asks each engine once."""
    for name in sorted({cell.engine for cell in plan.cells.values()}):
        engine = plan.engines[name]
        cells = [cell for cell in plan.cells.values() if cell.engine == name]
        lists = [list(cell.arguments[_HEAD:]) for cell in cells]
        if not (Path(engine.package) / "srt").is_dir():
            continue
        answers = cached(
            "arguments",
            digest([fingerprint(engine), dict(engine.env), lists]),
            partial(parse_arguments, engine.python, engine.env, lists),
        )
        for cell, answer in zip(cells, answers or [], strict=False):
            if answer is not None:
                yield f"cell {cell.id}: engine {name} refuses it: {answer[:300]}"
