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
from sgmatrix.core.hashing import digest
from sgmatrix.plan.axes import axis_flags
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.cells import Cell
from sgmatrix.plan.engine_parser import parse_arguments
from sgmatrix.plan.engines import fingerprint
from sgmatrix.plan.flag_audit import FlagUse, audit_flags
from sgmatrix.plan.patched_copy import PatchedCopy, provide
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


def _builds(plan: Plan) -> dict[tuple[str, Path], list[Cell]]:
    """Return the cells by what they run: engine, and folder of its package or patched copy."""
    builds: dict[tuple[str, Path], list[Cell]] = {}
    for cell in plan.cells.values():
        package = cell.package or Path(plan.engines[cell.engine].package)
        builds.setdefault((cell.engine, package), []).append(cell)
    return builds


def _has_source(package: Path) -> bool:
    """Tell whether there is a server to look at; a stand-in has none."""
    return (package / "srt").is_dir()


def provide_copies(plan: Plan) -> None:
    """Make the patched copies that the plan needs and that are not there yet.

    Raises:
        SgmatrixError: when an engine would not run its copy.
    """
    for cells in _builds(plan).values():
        if cells[0].copy is not None:
            provide(PatchedCopy.from_record(cells[0].copy), cells[0].python, cells[0].env)


def _audit(package: Path, flags: list[str]) -> dict[str, FlagUse]:
    key = digest([fingerprint(package), flags])

    def ask() -> dict[str, list[object]]:
        uses = audit_flags(package, flags)
        return {flag: [use.declared, list(use.reads)] for flag, use in uses.items()}

    known = cached("flag-audit", key, ask)
    return {flag: FlagUse(flag, known[flag][0], tuple(known[flag][1])) for flag in flags}


def audit_axes(campaign: Campaign, plan: Plan) -> list[AxisAudit]:
    """Return the audit of every axis that has more than one value, per engine that is used.

    An engine is audited as it is installed; one without the source of a server is not.
    """
    audits = []
    axes = {axis: values for axis, values in campaign.axes.items() if len(values) > 1}
    for name in sorted({cell.engine for cell in plan.cells.values()}):
        engine = plan.engines[name]
        if not _has_source(Path(engine.package)):
            continue
        flags = {axis: axis_flags(axis, values) for axis, values in axes.items()}
        wanted = sorted({flag for some in flags.values() for flag in some})
        uses = _audit(Path(engine.package), wanted) if wanted else {}
        audits += [
            AxisAudit(axis, name, engine.version, tuple(uses[flag] for flag in some))
            for axis, some in flags.items()
            if some
        ]
    return audits


def refused_cells(plan: Plan) -> Iterator[str]:
    """Yield a line for every cell whose arguments its engine refuses; asks each engine once."""
    for (engine, package), cells in sorted(_builds(plan).items()):
        if not _has_source(package):
            continue
        lists = [list(cell.arguments[_HEAD:]) for cell in cells]
        answers = cached(
            "arguments",
            digest([fingerprint(package), dict(plan.engines[engine].env), lists]),
            partial(parse_arguments, cells[0].python, _parser_environment(plan, cells[0]), lists),
        )
        for cell, answer in zip(cells, answers or [], strict=False):
            if answer is not None:
                yield f"cell {cell.id}: engine {engine} refuses it: {answer[:300]}"


def _parser_environment(plan: Plan, cell: Cell) -> dict[str, str]:
    """Return the engine's environment, with the patched copy where the cell runs one."""
    env = dict(plan.engines[cell.engine].env)
    return env if cell.copy is None else {**env, "PYTHONPATH": cell.env["PYTHONPATH"]}
