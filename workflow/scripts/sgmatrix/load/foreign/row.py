"""From one result of another tool to a row of `REFERENCES`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.schemas_references import REFERENCES
from sgmatrix.load.foreign import values
from sgmatrix.load.foreign.aliases import REQUIRED, Alias, table
from sgmatrix.load.foreign.doubts import doubts
from sgmatrix.load.foreign.latencies import settle
from sgmatrix.load.foreign.reader import Found, unreadable
from sgmatrix.load.foreign.tools import Tool, recognise, time_unit

_FIXED_LENGTHS = re.compile(r"D\((\d+),\s*(\d+)\)")
"""genai-bench's scenario in which all requests have the same lengths."""
_SHOWN_KEYS = 60


@dataclass(frozen=True)
class _Taken:
    """What was read of a result so far."""

    columns: dict[str, Any]
    used: dict[str, str]
    """By column: the key that its value came from."""
    infinite: list[str]
    """Keys with an infinite value where none can be."""

    def drop(self, column: str) -> None:
        """Make it null; what the tool wrote then stays in `raw`."""
        self.columns[column] = None
        self.used.pop(column, None)


def reference_row(found: Found, asked: int | None = None) -> dict[str, Any]:
    """Return the row of a result.

    Args:
        found: the result and where it stands.
        asked: requests that were offered, for tools that do not say so.

    Raises:
        SgmatrixError: `result_unreadable` when no known tool writes such keys, or the result
            lacks what makes it one: completed requests, a duration, an output throughput.
    """
    tool = recognise(found.data)
    if tool is None:
        what = f"no tool that is known writes such keys: {_keys(found.data)}"
        raise unreadable(
            found.place, what, "it must be a result of SGLang's, vLLM's or genai-bench's client"
        )
    taken = _take(found.data, tool)
    row = taken.columns
    _by_tool(found, tool, taken)
    _require(found, tool, row)
    unanswered = _from_details(found.data, tool, row)
    _complete_counts(row, asked)
    settled = settle(row, tool.name)
    for column in settled.missing:
        taken.drop(column)
    flags = doubts(row, unanswered=unanswered, impossible=(*taken.infinite, *settled.unexplained))
    for column in _not_measured(row):
        taken.drop(column)
    itl, tpot = row.get("itl_ms_mean"), row.get("tpot_ms_mean")
    ok = bool(row["completed"])
    valid = "valid" if ok else None
    return {
        **row,
        "source_file": found.file,
        "source_line": found.line,
        "source_item": found.item,
        "tool": tool.name,
        "form": tool.form,
        "status": "ok" if ok else "failed",
        "reason": None if ok else "client_crash",
        "validity": ",".join(one.flag for one in flags) or valid,
        "validity_detail": " | ".join(f"{one.flag}: {one.why}" for one in flags) or None,
        "streamed": settled.streamed,
        "tokens_per_chunk": values.number(itl / tpot) if itl and tpot else None,
        "raw": json.dumps(
            values.rest(found.data, frozenset(taken.used.values())),
            sort_keys=True,
            allow_nan=False,
        ),
    }


def _not_measured(row: Mapping[str, Any]) -> tuple[str, ...]:
    if not row["completed"]:
        return ("output_tok_s", "total_tok_s", "request_s", "concurrency_mean")
    # answers have tokens; where none was counted, 0 is no throughput
    return ("output_tokens", "output_tok_s", "total_tok_s") if row["output_tokens"] == 0 else ()


def _keys(data: Mapping[str, Any]) -> str:
    names = ["".join(c if c.isprintable() else "?" for c in name[:40]) for name in sorted(data)]
    more = f" and {len(names) - _SHOWN_KEYS} more" if len(names) > _SHOWN_KEYS else ""
    return (", ".join(names[:_SHOWN_KEYS]) or "none") + more


def _take(data: Mapping[str, Any], tool: Tool) -> _Taken:
    taken = _Taken(dict.fromkeys(REFERENCES.names), {}, [])
    for column, aliases in table(tool.name).items():
        for alias in aliases:
            stated = values.at(data, alias.key)
            value = _convert(stated, alias)
            if value is not None:
                taken.columns[column], taken.used[column] = value, alias.key
                break
            if column != "request_rate" and isinstance(stated, float) and math.isinf(stated):
                taken.infinite.append(alias.key)
    return taken


def _convert(stated: Any, alias: Alias) -> Any:
    unit = alias.unit
    if unit.kind == "text":
        return values.text(stated)
    if unit.kind != "number":
        return values.count(stated, 2**63 - 1 if unit.kind == "tokens" else 2**31 - 1)
    read = values.number(stated)
    return None if read is None else values.number(read * unit.factor)  # may overflow


def _by_tool(found: Found, tool: Tool, taken: _Taken) -> None:
    """Read what is more than a key and its unit."""
    data, row = found.data, taken.columns
    stated = values.at(data, taken.used.get("request_rate", "request_rate"))
    row["request_rate_text"] = _rate_text(stated)
    if row["request_rate_text"] is not None:
        taken.used.setdefault("request_rate", "request_rate")
    if tool.name == "genai-bench":
        _genai_bench(found, taken)
    elif tool.name != "vllm":
        _sglang(data, tool, taken)
    if row["request_rate"] is not None or row["request_rate_text"] == "trace":
        row["max_concurrency"], row["concurrency"] = row["concurrency"], None


def _rate_text(stated: Any) -> str | None:
    if isinstance(stated, float) and not math.isfinite(stated):
        return f"{stated:g}"
    read = None if isinstance(stated, str) else values.number(stated)
    return values.text(stated) if read is None else f"{read:.12g}"


def _sglang(data: Mapping[str, Any], tool: Tool, taken: _Taken) -> None:
    row = taken.columns
    kind = row.get("dataset")
    if kind is not None and not kind.startswith("random"):
        # the line then holds the defaults of options that had no effect
        taken.drop("input_len")
        taken.drop("output_len")
        if kind == "sharegpt":
            row["output_len"] = values.count(data.get("sharegpt_output_len"))
    if tool.form == "rust client" and row["output_tokens_retokenized"] == 0:
        taken.drop("output_tokens_retokenized")  # it writes 0 with --disable-retokenize


def _genai_bench(found: Found, taken: _Taken) -> None:
    data, row, run = found.data, taken.columns, found.data["aggregated_metrics"]
    unit = time_unit(data)
    if unit not in {"s", "ms"}:
        raise unreadable(found.place, f"_time_unit is {unit!r}", "it must be s or ms")
    if unit == "ms":
        for column in list(taken.used):
            if "_ms_" in column:
                row[column] = values.number(values.at(data, taken.used[column]))
    if run.get("iteration_type") == "request_rate":
        taken.drop("concurrency")  # that number is the rate
    if lengths := _FIXED_LENGTHS.fullmatch(row["dataset"] or ""):
        row["input_len"], row["output_len"] = (values.count(one) for one in lengths.groups())
    per_minute = values.number(run.get("requests_per_minute"))
    if row["duration_s"] is None and per_minute and row["completed"]:
        # older versions leave it out; their rate is completed / duration
        row["duration_s"] = 60 * row["completed"] / per_minute


def _require(found: Found, tool: Tool, row: Mapping[str, Any]) -> None:
    lacks = [column for column in REQUIRED if row.get(column) is None]
    if row.get("completed") == 0 and lacks == ["output_tok_s"]:
        return  # of no answer there is none
    if lacks:
        keys = {column: [alias.key for alias in table(tool.name)[column]] for column in lacks}
        wanted = "; ".join(f"{column} ({' or '.join(names)})" for column, names in keys.items())
        what = f"{tool} without {wanted}; its keys are {_keys(found.data)}"
        if tool.name == "genai-bench":
            what += f"; and in aggregated_metrics {_keys(found.data['aggregated_metrics'])}"
        raise unreadable(found.place, what, "take it out, or add what is known from its log")


def _from_details(data: Mapping[str, Any], tool: Tool, row: dict[str, Any]) -> int:
    """Read how many requests were asked from lists with one value for each.

    Returns:
        How many were answered with nothing although the tool found no error.
    """
    errors = data.get("errors")
    if not isinstance(errors, list) or not errors:
        return 0
    if row.get("asked") is None:
        row["asked"] = len(errors)
    texts, firsts = data.get("generated_texts"), data.get("ttfts")
    nothing = [False] * len(errors)
    if isinstance(texts, list) and len(texts) == len(errors):
        nothing = [not one for one in texts]
    if tool.name != "vllm" and isinstance(firsts, list) and len(firsts) == len(errors):
        nothing = [one or not first for one, first in zip(nothing, firsts, strict=True)]
    return sum(one and not error for one, error in zip(nothing, errors, strict=True))


def _complete_counts(row: dict[str, Any], asked: int | None) -> None:
    if row.get("asked") is None:
        failed = row.get("failed")
        row["asked"] = asked if failed is None else values.count(row["completed"] + failed)
    if row.get("failed") is None and row["asked"] is not None:
        left = row["asked"] - row["completed"]
        row["failed"] = left if left >= 0 else None
