"""The figure and the table of throughput per GPU against speed for one user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sgmatrix.dataset.figures import LoadPoint, Workload
from sgmatrix.present.cells import CellView
from sgmatrix.present.figures.curves import Curve, Mark
from sgmatrix.present.figures.levers import Shared
from sgmatrix.present.figures.pareto import draw_pareto, front
from sgmatrix.present.figures.svg import Chart


@dataclass(frozen=True)
class Best:
    """A point of the Pareto front."""

    cell: str
    at: str
    per_user: float
    per_gpu: float
    failed: bool
    """The cell failed at another load."""


@dataclass(frozen=True)
class Pareto:
    """Throughput per GPU against speed for one user, of one workload."""

    chart: Chart
    front: tuple[Best, ...]
    per: str
    """`GPU`, or `server` where there is none."""


def closed_loads(cell: CellView, workload: Workload) -> list[LoadPoint]:
    """Return what a cell did in the closed loop with a workload."""
    return [
        load for load in cell.loads if load.workload == workload and load.concurrency is not None
    ]


def trade_off(cells: Sequence[CellView], workload: Workload, shared: Shared) -> Pareto | None:
    """Return the trade-off of the cells; None where none has a TPOT."""
    looks = {name: look for panel in shared.panels for name, look in panel.looks.items()}
    per_gpu = any(load.per_gpu for cell in cells for load in closed_loads(cell, workload))
    per = "GPU" if per_gpu else "server"
    known: dict[Mark, Best] = {}
    curves = []
    for place, cell in enumerate(cells):
        marks = []
        for load in closed_loads(cell, workload):
            rate, user = load.per_gpu if per_gpu else load.output_tok_s, load.per_user
            if rate is None or user is None:
                continue
            mark = Mark(user.mean, rate.mean, rate.low, rate.high, rate.barred or user.barred)
            failed = cell.status == "failed"
            known.setdefault(mark, Best(cell.cell, load.at, user.mean, rate.mean, failed))
            marks.append(mark)
        look = looks.get(cell.cell)
        if marks and look is not None:
            curves.append(
                Curve(look.colour, look.dashed, tuple(marks), marker=look.marker, number=place)
            )
    if not curves:
        return None
    best = [known[mark] for mark in front([mark for curve in curves for mark in curve.marks])]
    svg = draw_pareto(curves, ylabel=f"output throughput (tok/s per {per})")
    ends = "; ".join(
        f"{one.cell} at concurrency {one.at}: {one.per_gpu:,.4g} tok/s per {per}, "
        f"{one.per_user:,.4g} tok/s for one user"
        for one in ([best[0], best[-1]] if len(best) > 1 else best)
    )
    chart = Chart(
        Markup(svg),  # noqa: S704 - our own SVG, text escaped
        f"Output throughput per {per} against speed for one user. {ends}",
        "Up and to the right is better; the broad line joins the points that no other one beats "
        "in both.",
    )
    return Pareto(chart, tuple(best), per)
