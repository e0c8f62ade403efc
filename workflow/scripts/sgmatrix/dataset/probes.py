"""Probes: the table `experts`, and whether a probe read as many experts as its settings allow.

Of B tokens with k0 experts of their own choice out of E, each drawn evenly and by itself, a step
reads E (1 - (1 - k0/E)^B) distinct experts in the mean. Uneven routing reads fewer. OEA adds none
to them but where a row would be left with fewer than k (`fill: distinct`), and then from the row's
own k best, so that no more are read than without OEA. What reads more, beyond chance, runs
something else.

Source    counting argument.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import PROBE, Layout
from sgmatrix.core.schema_versions import read_dataset
from sgmatrix.core.schemas_compare import EXPERTS
from sgmatrix.dataset.history import LeftOut

_SLACK = 0.04
"""Share by which a right kernel was seen to miss the mean."""
_CHANCE = 4.0
"""Standard errors."""


def probe_of(layout: Layout, cell: str) -> dict[str, Any] | None:
    """Return the published probe of a cell; None where there is none."""
    found: dict[str, Any] | None = read_json_or_none(layout.launch(cell, PROBE) / "probe.json")
    return found


def expected_distinct(batch: int, *, experts: int, own: int) -> float:
    """Return the mean number of distinct experts of evenly and independently routed tokens.

    Args:
        batch: tokens in the step.
        experts: routed experts of the layer.
        own: experts per token.
    """
    return experts * (1 - (1 - own / experts) ** batch)


def distinct_sd(batch: int, *, experts: int, own: int) -> float:
    """Return the standard deviation of that number, for one step of one layer."""
    missed = (1 - own / experts) ** batch
    both = ((experts - own) * (experts - own - 1) / (experts * (experts - 1))) ** batch
    variance = experts * missed * (1 - missed) + experts * (experts - 1) * (both - missed**2)
    return math.sqrt(max(variance, 0.0))


def _chance(seen: Mapping[str, Any], batch: int, own: int) -> float:
    """Return by how much the mean of the seen steps may be off by chance.

    Steps that all route the same tokens, as of a model that repeats itself, are one sample: they
    are as many as their spread says.
    """
    sd = distinct_sd(batch, experts=seen["experts"], own=own)
    if not sd:
        return 0.0
    alike = min(1.0, (seen.get("activated_sd") or 0.0) ** 2 / sd**2)
    return _CHANCE * sd / math.sqrt(max(1.0, seen["steps"] * alike))


def probe_doubts(layout: Layout, plan: Mapping[str, Any]) -> dict[str, str]:
    """Return, by cell, why its probe cannot be of the settings that it is said to have."""
    doubts = {}
    for planned in plan.get("probes", []):
        cell = plan["cells"][planned["cell"]]
        if not (cell.get("oea") or {}).get("on") or planned["reference"] is None:
            continue
        on, off = probe_of(layout, cell["id"]), probe_of(layout, planned["reference"])
        why = _doubt(on or {}, off or {}, cell["oea"]["settings"])
        if why is not None:
            doubts[cell["id"]] = why
    return doubts


def _doubt(
    on: Mapping[str, Any], off: Mapping[str, Any], settings: Mapping[str, Any]
) -> str | None:
    least = _least(settings)
    distinct = settings.get("fill") == "distinct"
    for batch, seen in (on.get("batches") or {}).items():
        most = _most(int(batch), seen, settings)
        if batch in (off.get("batches") or {}):
            most = min(most, off["batches"][batch]["activated_mean"])
        read = seen["activated_mean"]
        # rows that are filled vary as their whole top-k does
        owns = (settings["k0"], seen["top_k"]) if distinct else (settings["k0"],)
        chance = max(_chance(seen, int(batch), own) for own in owns)
        if read < least * (1 - _SLACK) or read > most * (1 + _SLACK) + chance:
            given = {"k0": settings["k0"], "p": settings.get("p", 1.0)}
            said = [f"{name} = {one:g}" for name, one in given.items() if name == "k0" or one < 1]
            said += ["fill = distinct"] if distinct else []
            return (
                f"the probe read {read:.1f} distinct experts at batch {batch}, "
                f"{', '.join(said)} allows {least} to {most:.1f}"
            )
    return None


def _least(settings: Mapping[str, Any]) -> int:
    """Return how many experts a token opens itself at least; below p = 1 one may be enough."""
    least: int = settings["k0"] if settings.get("p", 1.0) >= 1 else 1
    return least


def _most(batch: int, seen: Mapping[str, Any], settings: Mapping[str, Any]) -> float:
    """Return how many distinct experts a step may read in the mean, whatever its router prefers.

    Rows that are filled with distinct experts lack none once the batch has opened k: only below
    that do they add to it, most where all tokens open the same. With `k_max` or `max_rank` a row
    may leave what the batch has opened, and lack some at any batch size.
    """
    shared = expected_distinct(batch, experts=seen["experts"], own=settings["k0"])
    if settings.get("fill") != "distinct":
        return shared
    least, top_k, experts = _least(settings), int(seen["top_k"]), float(seen["experts"])
    lacking = batch * (top_k - least)
    if settings.get("max_rank") is not None or (settings.get("k_max") or top_k) < top_k:
        return min(shared + lacking, experts)
    return min(max(shared, least + lacking), experts)


def experts_table(layout: Layout) -> tuple[pa.Table, list[LeftOut]]:
    """Return the rows of all probes in the history, and the files that are left out."""
    tables, left_out = [EXPERTS.empty_table()], []
    for path in sorted((layout.root / "history").glob(f"*/{PROBE}/*/experts.parquet")):
        try:
            tables.append(read_dataset(path, "experts"))
        except SgmatrixError as error:
            why = error.facts.removeprefix(f"{path} ")
            left_out.append(LeftOut(path.relative_to(layout.root).as_posix(), why))
    tables = [table.replace_schema_metadata(None) for table in tables]
    return pa.concat_tables(tables).cast(EXPERTS), left_out
