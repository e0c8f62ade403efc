"""What is not to be trusted about a point: flags that never hide its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LENGTH_TOLERANCE = 0.05


def validity_flags(rows: Sequence[dict[str, Any]], *, cache_flushed: bool, warm: bool) -> list[str]:
    """Return the flags of a point that has at least one ok request; empty means valid.

    `partial`: not all requests succeeded. `length_mismatch`: the output tokens of a
    request differ from what was asked by more than 5 %. `implausible`: a latency that cannot be.
    `cache_hits`: the prefix cache was not emptied before. `cold`: the campaign has no warm-up.
    """
    ok = [row for row in rows if row["ok"]]
    flags = []
    if len(ok) < len(rows):
        flags.append("partial")
    if not warm:
        flags.append("cold")
    if not cache_flushed:
        flags.append("cache_hits")
    # one by one: an error inside a stream ends a request early, and is no error to the client
    if any(
        abs(row["output_tokens"] - row["requested_output_tokens"])
        > LENGTH_TOLERANCE * row["requested_output_tokens"]
        for row in ok
    ):
        flags.append("length_mismatch")
    if any(row["e2e_ms"] <= 0 or row["ttft_ms"] > row["e2e_ms"] * (1 + 1e-9) for row in ok) or any(
        row["output_tokens"] > 1 and not row["tpot_ms"] for row in ok
    ):
        flags.append("implausible")
    return flags
