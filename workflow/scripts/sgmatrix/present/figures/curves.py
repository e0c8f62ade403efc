"""Curves against concurrency: one quantity, several cells, references and a ceiling beside them.

Names of cells stand beside the figure, in the page, where they wrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from sgmatrix.present.figures.palette import MUTED
from sgmatrix.present.figures.svg import element, figure, ink

_MOST_TICKS = 10


@dataclass(frozen=True)
class Mark:
    """One point of a curve."""

    x: float
    y: float
    low: float
    high: float
    barred: bool
    """Drawn hollow and off the line."""


@dataclass(frozen=True)
class Curve:
    """One cell, a series of a reference, or a ceiling."""

    colour: str
    dashed: bool
    marks: tuple[Mark, ...]
    kind: Literal["cell", "reference", "ceiling"] = "cell"
    marker: str = "o"
    number: int | None = None
    """Place of the cell in the campaign: the page finds its curves by it."""


_LINES = {"reference": ":", "ceiling": "-."}


def draw(
    curves: Sequence[Curve],
    *,
    ylabel: str,
    top: float | None = None,
    xs: Sequence[float] = (),
    small: bool = False,
) -> str:
    """Return curves over concurrency (log2) as an SVG element; nothing where there is no point.

    Args:
        curves: drawn in this order, the last on top.
        ylabel: with its unit.
        top: end of the y axis; None: a little above the highest mark.
        xs: marks of the x axis; none given: those of the curves.
        small: one of several panels.
    """
    if not any(curve.marks for curve in curves):
        return ""
    with figure(*(3.1, 2.4) if small else (4.7, 3.3)) as made:
        axes = made.add_subplot()
        for curve in curves:
            _plot(axes, curve)
        ticks = sorted(xs or {mark.x for curve in curves for mark in curve.marks})
        axes.set_xscale("log", base=2)
        axes.set_xlim(ticks[0] / 1.2, ticks[-1] * 1.2)
        step = -(-len(ticks) // (_MOST_TICKS - 3 if small else _MOST_TICKS))
        axes.xaxis.set_major_locator(FixedLocator([float(x) for x in ticks[::step]]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,g}"))
        highest = max(mark.high for curve in curves for mark in curve.marks)
        axes.set_ylim(0, 1.08 * (highest if top is None else top))
        axes.grid(visible=True)
        axes.set_xlabel("concurrency" if small else "concurrency (requests in flight)")
        axes.set_ylabel(ylabel)
        return element(made)


def _plot(axes: Axes, curve: Curve) -> None:
    colour = ink(curve.colour)
    muted = curve.colour == MUTED
    width = 0.8 if muted else 1.6
    own = curve.kind == "cell"
    line = [mark for mark in curve.marks if not mark.barred]
    artists = axes.plot(
        [mark.x for mark in line],
        [mark.y for mark in line],
        color=colour,
        linewidth=width,
        linestyle=("--" if curve.dashed else "-") if own else _LINES[curve.kind],
        marker={"cell": curve.marker, "reference": "D", "ceiling": ""}[curve.kind],
        fillstyle="full" if own else "none",
        markersize=3 if muted and own else 4,
    )
    hollow = [mark for mark in curve.marks if mark.barred]
    if hollow:
        artists += axes.plot(
            [mark.x for mark in hollow],
            [mark.y for mark in hollow],
            color=colour,
            linestyle="none",
            marker=curve.marker,
            markersize=6,
            fillstyle="none",
        )
    if curve.number is not None:
        for place, artist in enumerate(artists):
            artist.set_gid(f"cell{curve.number}.{place}")
    spread = [mark for mark in curve.marks if mark.low < mark.high]
    if spread:
        axes.vlines(
            [mark.x for mark in spread],
            [mark.low for mark in spread],
            [mark.high for mark in spread],
            color=colour,
            linewidth=width,
        )
