"""Colours of figures and page: told apart also by eyes that see fewer of them, light and dark.

A figure names its colours by variables of the page, so that one figure serves both. The smallest
distance of two colours, in OKLab, is above 0.12 for each of the three kinds of colour blindness,
and each stands out from the page by 3:1 (`tests/unit/present/figures/test_palette.py`).
"""

from __future__ import annotations

LIGHT = ("#5a90f2", "#a28a04", "#ba3b67", "#4e54d9", "#743b00", "#ef5c9d", "#50338f")
DARK = ("#34e8f2", "#edd16b", "#ea7a11", "#a765f2", "#a44e0c", "#00b3a5", "#046e8c")
COLOURS = tuple(f"var(--c{i})" for i in range(1, 8))
PAGE = "currentColor"
MUTED = "var(--muted)"
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""One per colour: a colour is never the only difference."""
MARKER_PATHS = {
    "o": "M13 2a3 3 0 1 0 .01 0Z",
    "s": "M10 2h6v6h-6Z",
    "^": "M13 1l3.6 7h-7.2Z",
    "D": "M13 1l4 4-4 4-4-4Z",
    "v": "M13 9l3.6-7h-7.2Z",
    "P": "M12 1h2v3h3v2h-3v3h-2v-3h-3v-2h3Z",
    "X": "M10 2l3 2 3-2v2l-1.5 1 1.5 1v2l-3-2-3 2v-2l1.5-1-1.5-1Z",
}
"""The same shapes in the middle of a legend's line of 26 by 10."""

LIGHT_PAGE, DARK_PAGE = "#ffffff", "#14171b"


def css_variables(colours: tuple[str, ...]) -> str:
    """Return the declarations of a scheme."""
    return " ".join(f"--c{i}: {colour};" for i, colour in enumerate(colours, 1))


STAND_INS = {
    PAGE: "#010203",
    MUTED: "#010204",
    **{colour: f"#0102{16 + i:02x}" for i, colour in enumerate(COLOURS)},
}
"""What stands for each while matplotlib draws, which knows no variables."""
