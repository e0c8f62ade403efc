"""Distinct experts of a decode step, as the untimed probe launches counted them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sgmatrix.present.case_study.store import Study


@dataclass(frozen=True)
class Opened:
    """Of a cell at one batch."""

    mean: float
    """Distinct experts per step and layer."""
    steps: int
    """Steps with exactly that many tokens, times layers."""
    experts: int
    top_k: int


def mean_experts(rows: Sequence[dict[str, Any]]) -> dict[str, dict[int, Opened]]:
    """Return the means by cell and batch, over steps whose batch was full."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows:
        if row["tokens"] == row["batch"]:
            groups.setdefault((row["cell"], row["batch"]), []).append(row)
    found: dict[str, dict[int, Opened]] = {}
    for (cell, batch), some in groups.items():
        mean = sum(row["activated"] for row in some) / len(some)
        steps = len({row["step"] for row in some})
        one = Opened(mean, steps, some[0]["experts"], some[0]["top_k"])
        found.setdefault(cell, {})[batch] = one
    return found


def expected(study: Study, cell: str, one: Opened, batch: int) -> float:
    """Return E(1-(1-k/E)^B): k of a token's own choice, routing taken as even."""
    text = study.facts["cells"][cell].get("oea") or "off"
    own = one.top_k if text == "off" else int(text.partition("-")[0])
    return float(one.experts * (1 - (1 - own / one.experts) ** batch))
