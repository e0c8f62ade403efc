"""From the client's result line to rows of our own, each request judged by itself.

The line is an input, not the record. It has no failed count and no number of requests asked,
and the client counts an HTTP 200 that carried an error as a success with the requested length.
Here a request is ok only if it has a first token, a text and no error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sgmatrix.core.errors import SgmatrixError

_COLUMNS = ("input_lens", "output_lens", "ttfts", "itls", "generated_texts", "errors")


def request_rows(line: dict[str, Any], asked: int, output_len: int) -> list[dict[str, Any]]:
    """Return one row per request asked, in the order of the client.

    Args:
        line: result line of `sglang.benchmark.serving --output-details`; times in seconds.
        asked: how many requests were offered.
        output_len: output tokens per request that were asked for.

    Raises:
        SgmatrixError: `client_crash` when the line lacks a column, or holds another number of
            requests than were asked: then it is not the line of this load point.
    """
    missing = [name for name in _COLUMNS if not isinstance(line.get(name), list)]
    lengths = {name: len(line[name]) for name in _COLUMNS if name not in missing}
    if missing or set(lengths.values()) != {asked}:
        fewer = not missing and len(set(lengths.values())) == 1 and lengths["errors"] < asked
        hint = "; SGLang's client leaves out prompts of a single token" if fewer else ""
        raise SgmatrixError(
            "client_crash",
            f"the client's line is not that of {asked} requests: {lengths}, missing {missing}"
            f"{hint}",
        )
    columns = zip(*(line[name] for name in _COLUMNS), strict=True)
    try:
        return [_row(i, output_len, *values) for i, values in enumerate(columns)]
    except (TypeError, ValueError) as error:
        raise SgmatrixError("client_crash", f"the client's line is damaged: {error}") from None


def _row(
    index: int,
    requested: int,
    input_len: int | None,
    tokens: int | None,
    ttft_s: float | None,
    itls_s: list[float] | None,
    text: str,
    error: str | None,
) -> dict[str, Any]:
    if not all(isinstance(count, int | None) for count in (input_len, tokens)):
        raise TypeError(
            f"request {index} has {input_len!r} prompt tokens, {tokens!r} output tokens"
        )
    problem = error or _problem(input_len, tokens, ttft_s, itls_s, text)
    row: dict[str, Any] = {
        "request": index,
        "ok": problem is None,
        "error": problem,
        "input_tokens": input_len,
        "requested_output_tokens": requested,
        "output_tokens": None,
        "ttft_ms": None,
        "tpot_ms": None,
        "e2e_ms": None,
        "itl_ms": None,
    }
    if problem is None and ttft_s is not None and tokens is not None and itls_s is not None:
        decode_s = math.fsum(itls_s)
        row |= {
            "output_tokens": tokens,
            "ttft_ms": 1e3 * ttft_s,
            "e2e_ms": 1e3 * (ttft_s + decode_s),
            # one token has no time per further token, nor have tokens that came in one piece
            "tpot_ms": 1e3 * decode_s / (tokens - 1) if tokens > 1 and itls_s else None,
            "itl_ms": [1e3 * gap for gap in itls_s],
        }
    return row


def _problem(
    input_len: int | None,
    tokens: int | None,
    ttft_s: float | None,
    itls_s: list[float] | None,
    text: str,
) -> str | None:
    """Return why a request that the client calls a success is none; None where it is one."""
    if ttft_s is None or not math.isfinite(ttft_s) or ttft_s <= 0:
        return "no first token"
    if tokens is None or tokens < 1:
        return "no output token"
    if input_len is None:
        return "no count of prompt tokens"
    if itls_s is None or not all(math.isfinite(gap) for gap in itls_s):
        return "a time between tokens is no number"
    return None if text else "empty text"


def percentile(values: Sequence[float], q: float) -> float:
    """Return the q-th percentile of sorted values by linear interpolation, as numpy does."""
    rank = (len(values) - 1) * q / 100
    low = math.floor(rank)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (rank - low)


def summarise(
    rows: Sequence[dict[str, Any]], duration_s: float | None
) -> dict[str, float | int | None]:
    """Return the metrics of a point from its requests; what was not measured is None.

    Output throughput is output tokens of ok requests over the client's duration, which runs
    from the first send to the last token, ramp-up and tail included.
    """
    from sgmatrix.core.schemas import LATENCIES, QUANTILES

    ok = [row for row in rows if row["ok"]]
    if not isinstance(duration_s, int | float) or not 0 < duration_s < math.inf:
        duration_s = None  # also what is no number
    out: dict[str, float | int | None] = {
        "completed": len(ok),
        "failed": len(rows) - len(ok),
        "duration_s": duration_s,
    }
    if duration_s and ok:
        tokens = sum(row["output_tokens"] for row in ok)
        out["output_tok_s"] = tokens / duration_s
        out["total_tok_s"] = (tokens + sum(row["input_tokens"] for row in ok)) / duration_s
        out["request_s"] = len(ok) / duration_s
    for latency in LATENCIES:
        column = [row[f"{latency}_ms"] for row in ok]
        if latency == "itl":
            column = [gap for gaps in column for gap in gaps]
        values = sorted(value for value in column if value is not None)
        if values:
            out[f"{latency}_ms_mean"] = math.fsum(values) / len(values)
            out |= {f"{latency}_ms_p{q}": percentile(values, q) for q in QUANTILES}
    return out
