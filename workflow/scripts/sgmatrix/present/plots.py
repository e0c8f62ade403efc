"""Curves against concurrency as inline SVG. The same curves give the same bytes.

Lines of text and axes take the colour of the page around them, so that one figure serves
light and dark. Names of cells stand beside the figure, in the page, where they wrap.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

COLOURS = ("#3b82f6", "#f97316", "#10b981", "#e11d48", "#8b5cf6", "#b7791f", "#0e9fbc")
PAGE = "currentColor"
MUTED = "#8a8f98"

_INK = "#010203"  # stands for the colour of the page until the SVG is written
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "sgmatrix",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": _INK,
    "grid.alpha": 0.12,
    "grid.linewidth": 0.7,
    "axes.unicode_minus": False,
}
_MOST_TICKS = 10


@dataclass(frozen=True)
class Mark:
    """One point of a curve."""

    x: int
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


_LINES = {"reference": ":", "ceiling": "-."}
_MARKERS = {"cell": "o", "reference": "D", "ceiling": ""}


def _line(dashed: bool) -> str:
    return "--" if dashed else "-"


def draw(curves: Sequence[Curve], *, ylabel: str) -> str:
    """Return curves over concurrency (log2) as an SVG element; nothing where there is no point."""
    if not any(curve.marks for curve in curves):
        return ""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(4.7, 3.3), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        for curve in curves:
            colour = _INK if curve.colour == PAGE else curve.colour
            width = 0.8 if curve.colour == MUTED else 1.6
            line = [mark for mark in curve.marks if not mark.barred]
            axes.plot(
                [mark.x for mark in line],
                [mark.y for mark in line],
                color=colour,
                linewidth=width,
                linestyle=_LINES[curve.kind] if curve.kind != "cell" else _line(curve.dashed),
                marker=_MARKERS[curve.kind],
                fillstyle="full" if curve.kind == "cell" else "none",
                markersize=3 if curve.colour == MUTED and curve.kind == "cell" else 4,
            )
            hollow = [mark for mark in curve.marks if mark.barred]
            axes.plot(
                [mark.x for mark in hollow],
                [mark.y for mark in hollow],
                color=colour,
                linestyle="none",
                marker="o",
                markersize=6,
                fillstyle="none",
            )
            spread = [mark for mark in curve.marks if mark.low < mark.high]
            axes.vlines(
                [mark.x for mark in spread],
                [mark.low for mark in spread],
                [mark.high for mark in spread],
                color=colour,
                linewidth=width,
            )
        xs = sorted({mark.x for curve in curves for mark in curve.marks})
        axes.set_xscale("log", base=2)
        axes.set_xlim(xs[0] / 1.2, xs[-1] * 1.2)
        step = -(-len(xs) // _MOST_TICKS)
        axes.xaxis.set_major_locator(FixedLocator([float(x) for x in xs[::step]]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,g}"))
        axes.set_ylim(0, 1.08 * max(mark.high for curve in curves for mark in curve.marks))
        axes.grid(visible=True)
        axes.set_xlabel("concurrency (requests in flight)")
        axes.set_ylabel(ylabel)
        out = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(out, format="svg", transparent=True, metadata=nothing)
    return _inline(out.getvalue())


def _inline(svg: str) -> str:
    """Return the bare element: no prologue, no style for the whole page, no ids that clash."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg, count=2)
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    svg = re.sub(r'(<svg) width="[^"]*" height="[^"]*"', r"\1", svg)
    return svg.replace(_INK, PAGE)
