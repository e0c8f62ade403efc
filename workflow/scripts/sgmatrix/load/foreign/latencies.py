"""Latencies that a tool wrote although none was measured: taken out, so that 0.0 never wins.

The tools compute means and percentiles of empty lists as 0. Whether that hides a fault or is
by design tells what else the line says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.schemas import LATENCIES, QUANTILES
from sgmatrix.load.foreign.aliases import ToolName

STATS = ("mean", *(f"p{q}" for q in QUANTILES))
COLUMNS = tuple(f"{latency}_ms_{stat}" for latency in LATENCIES for stat in STATS)
_SAME = 1e-3
"""Two latencies that differ by less are one."""


@dataclass(frozen=True)
class Settled:
    """What became of the latencies of a row."""

    missing: tuple[str, ...]
    """Columns that are to be null."""
    streamed: bool | None
    unexplained: tuple[str, ...]
    """Those of the missing that are 0 for no known reason."""


def settle(row: dict[str, Any], tool: ToolName) -> Settled:
    """Return which latencies of a row, in ms, were never measured.

    No request completed: none was. One token per request: there is no time per further token.
    Not streamed: only E2E was. Any other 0 is a value that cannot be.
    """
    if not row["completed"]:
        return Settled(COLUMNS, None, ())
    streamed = _streamed(row, tool)
    missing: list[str] = []
    if streamed is False:
        missing = _columns("ttft", "tpot", "itl")
    elif single_token(row):
        missing = [name for name in _columns("tpot", "itl") if not row.get(name)]
    zero = [name for name in COLUMNS if name not in missing and row.get(name) == 0]
    return Settled((*missing, *zero), streamed, tuple(zero))


def _columns(*latencies: str) -> list[str]:
    return [f"{latency}_ms_{stat}" for latency in latencies for stat in STATS]


def _values(row: dict[str, Any], latency: str) -> list[float]:
    return [row[name] for name in _columns(latency) if row.get(name) is not None]


def single_token(row: Mapping[str, Any]) -> bool:
    """Tell whether no request had more than one output token."""
    tokens = row.get("output_tokens")
    if not tokens:  # not counted
        return bool(row.get("output_len") == 1)
    return bool(tokens <= row["completed"])


def _streamed(row: dict[str, Any], tool: ToolName) -> bool | None:
    """Tell whether answers came token by token; None when the line does not tell."""
    if any(gap > 0 for gap in _values(row, "itl")):
        return True
    if single_token(row):
        return None
    first = _values(row, "ttft")
    # vLLM leaves the first token at 0, and its TPOT is then E2E over the tokens
    if tool == "vllm" and first and not any(first):
        return False
    if _all_same(row) and not any(_values(row, "tpot")):
        return False
    return True if any(_values(row, "tpot")) and any(first) else None


def _all_same(row: dict[str, Any]) -> bool:
    """Tell whether TTFT is E2E, as SGLang's client writes it with `--disable-stream`."""
    pairs = [
        (row[first], row[whole])
        for first, whole in zip(_columns("ttft"), _columns("e2e"), strict=True)
        if row.get(first) and row.get(whole)
    ]
    return bool(pairs) and _close(pairs)


def _close(pairs: Iterable[tuple[float, float]]) -> bool:
    return all(math.isclose(one, other, rel_tol=_SAME) for one, other in pairs)
