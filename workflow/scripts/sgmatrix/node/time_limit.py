"""A machine that is lent for a time: no launch begins that would not end in it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import Layout

ENDS_VARIABLE = "SGMATRIX_ENDS_AT"
"""Unix time by which the launches of this invocation have to have ended."""
_ASSUMED_POINT_S, _ASSUMED_REST_S = 4.0, 12.0


def set_limit(seconds: float) -> None:
    """Have the launches of this invocation end within that time, from now."""
    os.environ[ENDS_VARIABLE] = repr(time.time() + seconds)


def begin_by(layout: Layout, cell: Mapping[str, Any], points: int) -> float | None:
    """Return the Unix time after which a launch is not to begin; None where there is no limit.

    A launch is taken to last as long as the longest that has ended in this campaign; before the
    first has, what its engine declares for the start, and fixed times.

    Args:
        layout: where the campaign's history lies.
        cell: of the plan.
        points: load points of the launch.
    """
    text = os.environ.get(ENDS_VARIABLE)
    if text is None:
        return None
    finals = (read_json_or_none(folder / "teardown.json") for *_, folder in layout.all_attempts())
    took = [_lasted_s(one) for one in finals if one is not None]
    assumed = cell["expected_start_s"] + _ASSUMED_POINT_S * points + _ASSUMED_REST_S
    return float(text) - max(filter(None, took), default=assumed)


def _lasted_s(final: Mapping[str, Any]) -> float | None:
    times = (final.get("closed") or {}).get("times") or {}
    if final.get("status") != "ok" or not {"started", "closed"} <= times.keys():
        return None
    return float(times["closed"] - times["started"])


def why_too_late(latest: float | None, now: float) -> str | None:
    """Return why a launch does not begin any more; None where it does."""
    if latest is None or now <= latest:
        return None
    return "the time limit is near: a further launch would not end in it"
