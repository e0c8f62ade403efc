"""Points beside their ceilings: the columns, the ratios, and what cannot have been measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.layout import Layout
from sgmatrix.core.schema_versions import read_dataset
from sgmatrix.dataset.flagging import add_flag

_COLUMNS = {
    "ceiling_hard_tok_s": "hard_tok_s",
    "ceiling_practical_tok_s": "practical_tok_s",
    # in step, all prompts may be read before the first decode step
    "ceiling_hard_tpot_ms": "hard_tpot_ms",
    "ceiling_practical_tpot_ms": "practical_tpot_with_prefill_ms",
    "ceiling_bound": "practical_bound",
    "ceiling_distinct_experts": "distinct_experts",
    "ceiling_kv_tokens": "kv_tokens",
    "ceiling_running": "running",
}
_ROUNDING = 1e-6


def add_ceilings(rows: Sequence[dict[str, Any]], layout: Layout) -> None:
    """Add the ceilings to the rows of `points`, where the table of them is there.

    A throughput above what any routing of tokens allows is a contradiction, and is flagged: the
    measurement, the facts or the ceiling is wrong. One above the practical tier is not.
    """
    known = read_ceilings(layout)
    for row in rows:
        found = known.get((row["cell"], row["launch"], row.get("attempt"), row["load_id"]))
        if found is None or found["why_not"] is not None:
            continue
        row |= {name: found[theirs] for name, theirs in _COLUMNS.items()}
        rate = row.get("output_tok_s")
        if rate is None:
            continue
        row["hard_ratio"] = rate / found["hard_tok_s"]
        row["practical_ratio"] = rate / found["practical_tok_s"]
        if row["current"] and row["status"] == "ok" and _is_impossible(rate, found):
            most, device = found["impossible_tok_s"], found["device"]
            why = f"{rate:,.0f} tok/s is above the {most:,.0f} that {device} allows at the most"
            add_flag(row, "implausible", why)


def _is_impossible(rate: float, ceiling: Mapping[str, Any]) -> bool:
    """Tell whether a throughput is above the hard tier, whichever experts the tokens open.

    Where compute is not known, as on a CPU node, the rates are measured ones and bind nothing.
    """
    known = ceiling["hard_compute_ms"] > 0
    return bool(known and rate > ceiling["impossible_tok_s"] * (1 + _ROUNDING))


def read_ceilings(layout: Layout) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the rows of `ceilings` by cell, launch, attempt and load id; none where it is not."""
    try:
        table = read_dataset(layout.datasets / "ceilings.parquet", "ceilings")
    except SgmatrixError:
        return {}
    return {
        (row["cell"], row["launch"], row["attempt"], row["load_id"]): row
        for row in table.to_pylist()
    }
