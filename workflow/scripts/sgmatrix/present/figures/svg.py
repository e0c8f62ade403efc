"""A matplotlib figure as an SVG element of the page: its colours, no ids, no date."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from sgmatrix.present.figures.palette import PAGE, STAND_INS

INK = STAND_INS[PAGE]
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "sgmatrix",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": INK,
    "grid.alpha": 0.12,
    "grid.linewidth": 0.7,
    "axes.unicode_minus": False,
}
_GROUP = re.compile(r'<g id="cell(\d+)[^"]*">')


@dataclass(frozen=True)
class Chart:
    """One figure of the page."""

    svg: Markup
    alt: str
    caption: str


@contextmanager
def figure(width_in: float = 4.7, height_in: float = 3.3) -> Iterator[Figure]:
    """Make a figure in the style of the page."""
    with matplotlib.rc_context(_STYLE):
        made = Figure(figsize=(width_in, height_in), layout="constrained")
        FigureCanvasSVG(made)
        yield made


def ink(colour: str) -> str:
    """Return what matplotlib draws with for a colour of the page."""
    return STAND_INS.get(colour, colour)


def element(made: Figure) -> str:
    """Return a figure as an SVG element; a group `cell<n>` keeps its number as a class `k<n>`."""
    out = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    made.savefig(out, format="svg", transparent=True, metadata=nothing)
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg, count=2)
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = _GROUP.sub(r'<g class="k\1">', svg)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    svg = re.sub(r'(<svg) width="[^"]*" height="[^"]*"', r"\1", svg)
    for colour, stand_in in STAND_INS.items():
        svg = svg.replace(stand_in, colour)
    return re.sub(r"\n\s*", "\n", svg)
