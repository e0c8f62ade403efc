"""Numbers and commands as the page shows them."""

from __future__ import annotations

from markupsafe import Markup


def number(value: float | None) -> str:
    """Return a quantity with about three digits; a missing one is blank."""
    if value is None:
        return ""
    if 0 < abs(value) < 0.01:
        return f"{value:.2g}"
    return f"{value:,.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f}"


def breakable(command: str) -> Markup:
    """Return a command that wraps at the slashes of its path and is copied as it is."""
    program, _, path = command.rpartition(" ")
    wrapped = Markup("/<wbr>").join(path.split("/"))
    return Markup('<span class="nowrap">{}</span> {}').format(program, wrapped)
