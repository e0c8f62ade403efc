"""Which machine a campaign was measured on, from the records of its attempts."""

from __future__ import annotations

from typing import Any

from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import Layout


def newest_node(layout: Layout) -> dict[str, Any]:
    """Return the facts of the node of the attempt that was asked for last; empty: none is told.

    By the time in the records: the files' own are those of a copy once results were copied.
    """
    found: dict[str, Any] = {}
    latest = ""
    for _, _, _, folder in layout.all_attempts():
        node = read_json_or_none(folder / "node.json")
        asked = str((read_json_or_none(folder / "spec.json") or {}).get("asked_at") or "")
        if node is not None and asked >= latest:
            found, latest = node, asked
    return found
