"""What each validity flag says, and which comparisons it bars. A flag never hides a number.

Not here: how a flag is found (`load.validity`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["throughput", "latency"]


@dataclass(frozen=True)
class Flag:
    """One validity flag."""

    name: str
    help: str
    bars: frozenset[Kind]
    finding: bool = False
    """Whether it tells of the load or the server as they were asked for, and of no fault."""


_BOTH: frozenset[Kind] = frozenset({"throughput", "latency"})
_THROUGHPUT: frozenset[Kind] = frozenset({"throughput"})
_LATENCY: frozenset[Kind] = frozenset({"latency"})

_FLAGS: dict[str, Flag] = {
    name: Flag(name, text, bars, finding=name in ("rate_limited", "queue_limited"))
    for name, text, bars in (
        ("partial", "not all requests succeeded", _BOTH),
        ("rate_limited", "the offered rate was the limit, not the server", _THROUGHPUT),
        ("client_limited", "the load client was the limit, not the server", _BOTH),
        ("queue_limited", "requests waited for a free slot of the server", _LATENCY),
        ("cold", "the server was not in a steady state before", _BOTH),
        ("cache_hits", "the prefix cache was not empty before", _BOTH),
        ("length_mismatch", "output lengths differ from what was asked for", _BOTH),
        ("implausible", "a latency that cannot be", _BOTH),
        ("foreign_load", "something else used the machine", _BOTH),
        ("throttled", "the GPUs lowered their clocks", _BOTH),
        ("no_telemetry", "an expected source of telemetry is missing", frozenset()),
    )
}

_CAPS = (
    "mem_fraction",
    "mem_fraction_static",
    "max_running_requests",
    "max_total_tokens",
    "max_mamba_cache_size",
    "swa_full_tokens_ratio",
    "schedule_conservativeness",
)
"""Axes that say for how many requests a server has room."""


FLAG_NAMES = tuple(_FLAGS)
"""In the order in which a point names them."""


def flags_of(validity: str | None) -> list[Flag]:
    """Return the flags of a point's `validity`; one that is not known bars everything."""
    if validity in (None, "", "valid"):
        return []
    names = str(validity).split(",")
    return [
        _FLAGS.get(name, Flag(name, "a flag that this version does not know", _BOTH))
        for name in names
    ]


def is_barred(row: Mapping[str, Any], kind: Kind) -> bool:
    """Tell whether a point is to be left out of comparisons of that kind.

    Where the room of the server is an axis of the campaign, a queue is what is asked about.

    Args:
        row: of `points`; `validity` and the columns `axis_*` are looked at.
        kind: of comparison.
    """
    asked_about = {"queue_limited"} if any(f"axis_{cap}" in row for cap in _CAPS) else set()
    flags = flags_of(row.get("validity"))
    return any(kind in flag.bars for flag in flags if flag.name not in asked_about)
