"""The report's section on ceilings: how far each cell is from physics, and what lies between."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgmatrix.analysis.root_cause import RootCause, root_cause
from sgmatrix.core.flags import is_barred
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.ceilings import read_ceilings
from sgmatrix.dataset.figures import LoadPoint, Row, offered
from sgmatrix.dataset.nodes import newest_node


@dataclass(frozen=True)
class CeilingView:
    """A cell at one load point, by the fastest of its launches."""

    row: Row
    ceiling: Mapping[str, Any]
    cause: RootCause | None

    @property
    def above_hard(self) -> bool:
        """Faster than uniform routing allows; possible where tokens open fewer experts."""
        return (self.row.get("hard_ratio") or 0.0) > 1

    @property
    def words(self) -> str:
        """What limits it, in a few words."""
        return "" if self.cause is None else _WORDS[self.cause.limit].partition(":")[0]

    @property
    def text(self) -> str:
        return "" if self.cause is None else cause_text(self.cause)


@dataclass(frozen=True)
class CeilingsSection:
    """All of it."""

    device: str
    why_not: str | None
    """Why there are no ceilings; None where there are."""
    views: tuple[CeilingView, ...]

    def at(self, cell: str, load: LoadPoint) -> CeilingView | None:
        """Return what is said of a cell at a load point; None where nothing is."""
        for view in self.views:
            row = view.row
            workload = (row["dataset"], row["input_len"], row["output_len"])
            at = offered(row["concurrency"], row.get("request_rate"))
            if (row["cell"], (workload, at)) == (cell, load.key):
                return view
        return None


def ceilings_section(layout: Layout, rows: Sequence[Row]) -> CeilingsSection | None:
    """Return the section; None where the campaign has no table of ceilings.

    Each cell stands there with its single stream and its highest throughput, the largest distance
    to the practical ceiling first.
    """
    known = read_ceilings(layout)
    if not known:
        return None
    reasons = sorted({one["why_not"] for one in known.values() if one["why_not"]})
    devices = sorted({one["device"] for one in known.values() if one["device"]})
    limit = _power_limit_w(layout)
    views = []
    for row in _chosen(rows):
        ceiling = known.get((row["cell"], row["launch"], row["attempt"], row["load_id"]))
        if ceiling is not None and ceiling["why_not"] is None:
            watts = limit * row["gpus"] if limit and row.get("gpus") else None
            views.append(CeilingView(row, ceiling, root_cause(row, ceiling, watts)))
    views.sort(key=lambda one: (one.row["practical_ratio"], one.row["cell"]))
    why = "; ".join(reasons) if reasons and not devices else None
    return CeilingsSection(", ".join(devices), why, tuple(views))


def _chosen(rows: Sequence[Row]) -> list[Row]:
    """Return the single stream and the best point of each cell, of the trusted current rows."""
    chosen: dict[tuple[str, bool], Row] = {}
    for row in rows:
        if row["status"] != "ok" or not row["current"] or is_barred(row, "throughput"):
            continue
        if row.get("output_tok_s") is None:
            continue
        for key in ((row["cell"], True),) if row["concurrency"] == 1 else ((row["cell"], False),):
            best = chosen.get(key)
            if best is None or row["output_tok_s"] > best["output_tok_s"]:
                chosen[key] = row
    return list(chosen.values())


def _power_limit_w(layout: Layout) -> float | None:
    """Return the power limit of one GPU as the driver says it, the lowest of the node."""
    node = newest_node(layout)
    found = [
        float(match[1])
        for gpu in node.get("gpus") or []
        if (match := re.match(r"([0-9.]+)", str(gpu.get("power.limit") or "")))
    ]
    return min(found, default=None)


_WORDS = {
    "kv_pool": "the KV pool is full",
    "host": "host overhead: no roof explains most of the step",
    "memory": "at the memory roof",
    "compute": "at the compute roof",
    "link": "at the roof of the links",
    "kernels": "kernels below their roofs",
}


def cause_text(cause: RootCause) -> str:
    """Return what limits a point in one line, each word with its number."""
    beyond = f"{cause.unexplained_ms:.3g} ms of each token, {share_text(cause.unexplained_share)}"
    roofs = {
        "memory": cause.memory_share,
        "compute": cause.compute_share,
        "links": cause.link_share,
    }
    used = [f"{name} {share_text(share)}" for name, share in roofs.items() if share is not None]
    parts = [f"{_WORDS[cause.limit]} ({beyond}, beyond the practical tier)"]
    parts.append(f"roofs used: {', '.join(used)}")
    if cause.tokens_per_expert is not None:
        parts.append(f"{cause.tokens_per_expert:.1f} tokens per expert")
    if cause.kv_share is not None:
        parts.append(f"KV pool {share_text(cause.kv_share)} full")
    if cause.power_share is not None:
        waits = ", the GPUs wait" if cause.waits else ""
        parts.append(f"power {share_text(cause.power_share)} of the limit{waits}")
    return "; ".join(parts)


def share_text(share: float | None) -> str:
    """Return a part of a whole in percent; below 10 % with a decimal, a missing one is blank."""
    if share is None:
        return ""
    return f"{100 * share:.1f} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"
