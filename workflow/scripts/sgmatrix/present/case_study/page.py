"""A page whose tables are made: each stands between two markers, and the text around is written.

<!-- table: <campaign> <name> -->
…
<!-- end -->
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sgmatrix.core.errors import SgmatrixError

_TABLE = re.compile(r"(<!-- table: (\S+) (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_tables(text: str, table: Callable[[str, str], str]) -> str:
    """Return the page with its tables made anew.

    Args:
        text: of the page.
        table: returns one, by campaign and name.

    Raises:
        SgmatrixError: `config_rejected` for a marker without an end.
    """
    begins, whole = text.count("<!-- table:"), len(_TABLE.findall(text))
    if begins != whole:
        raise SgmatrixError(
            "config_rejected",
            f"{begins} tables begin in the page, {whole} have an end",
            fix="write <!-- table: CAMPAIGN NAME --> and <!-- end --> on lines of their own",
        )

    def made(found: re.Match[str]) -> str:
        return f"{found[1]}{table(found[2], found[3])}\n{found[4]}"

    return _TABLE.sub(made, text)


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """Return a table; the first column is text, the others are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
