"""What a cell's own record says of where it was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sgmatrix.core.version import HARNESS_VERSION


def recorded_facts(
    cell: Mapping[str, Any], engines: Mapping[str, Any], client: str, node: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a cell's own record says of where it was measured, to be compared later."""
    return {
        "engine": {"name": cell["engine"], **engines[cell["engine"]]},
        "patches": dict(cell["patches"]),
        "client": client,
        "harness": HARNESS_VERSION,
        "node": dict(node),
    }
