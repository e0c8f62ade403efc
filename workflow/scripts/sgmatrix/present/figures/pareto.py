"""Throughput per GPU against speed for one user: what a server gives up of one for the other."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.ticker import FuncFormatter

from sgmatrix.present.figures.curves import Curve, Mark
from sgmatrix.present.figures.palette import MUTED, PAGE
from sgmatrix.present.figures.svg import element, figure, ink


def front(marks: Sequence[Mark]) -> list[Mark]:
    """Return the marks than which none is better in both, the fastest for a user last.

    Barred marks are none of them; of equal ones the first.
    """
    kept: list[Mark] = []
    for mark in sorted((one for one in marks if not one.barred), key=lambda one: (-one.x, -one.y)):
        if not kept or mark.y > kept[-1].y:
            kept.append(mark)
    return kept[::-1]


def draw_pareto(curves: Sequence[Curve], *, ylabel: str) -> str:
    """Return the points of all cells and the front of the best as an SVG element.

    Args:
        curves: marks have x in tok/s per user, y in tok/s per GPU or server.
        ylabel: with its unit.
    """
    marks = [mark for curve in curves for mark in curve.marks]
    if not marks:
        return ""
    best = front(marks)
    with figure(5.4, 3.4) as made:
        axes = made.add_subplot()
        for curve in curves:
            muted = curve.colour == MUTED
            for barred in (False, True):
                some = [mark for mark in curve.marks if mark.barred == barred]
                artists = axes.plot(
                    [mark.x for mark in some],
                    [mark.y for mark in some],
                    color=ink(curve.colour),
                    linewidth=0.6 if muted else 0.9,
                    linestyle="none" if barred else "--" if curve.dashed else "-",
                    marker=curve.marker,
                    fillstyle="none" if barred else "full",
                    markersize=3 if muted else 4.5,
                )
                if curve.number is not None:
                    artists[0].set_gid(f"cell{curve.number}.{int(barred)}")
        if len(best) > 1:
            line = ([mark.x for mark in best], [mark.y for mark in best])
            axes.plot(*line, color=ink(PAGE), alpha=0.28, linewidth=7, solid_capstyle="round")
        axes.set_xlim(0, 1.06 * max(mark.x for mark in marks))
        axes.set_ylim(0, 1.08 * max(mark.y for mark in marks))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axes.grid(visible=True)
        axes.set_xlabel("speed for one user (tok/s, 1000 / mean TPOT)")
        axes.set_ylabel(ylabel)
        return element(made)
