"""What is not to be trusted about a result of another tool: flags that never hide its numbers.

A result line is a summary, so it is held against itself: counts, rates, times and lengths
have to agree. Which flag bars which comparison is in `core.flags`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.schemas import LATENCIES
from sgmatrix.load.foreign.aliases import range_of
from sgmatrix.load.foreign.latencies import STATS, single_token

LENGTH_TOLERANCE = 0.05
RECOUNT = (0.8, 1.25)
"""Retokenized over counted output tokens; outside, what was asked was counted, not what came."""
CONTRADICTION = 0.05
"""How far a rate may be from its own count over its own duration."""
_CACHED = 0.05
_ROUNDING = 1e-6

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Doubt:
    """One flag of a result."""

    flag: str
    why: str


def doubts(row: Row, *, unanswered: int = 0, impossible: Sequence[str] = ()) -> list[Doubt]:
    """Return the flags of a result; empty means that nothing speaks against it.

    Args:
        row: columns of `REFERENCES`; null where not known.
        unanswered: requests that the tool counts as answered without a first token or a text.
        impossible: columns or keys that were 0 or infinite where neither can be.
    """
    whys = {
        "partial": list(_partial(row, unanswered)),
        "cache_hits": list(_cache_hits(row)),
        "length_mismatch": list(_length_mismatch(row)) if row["completed"] else [],
        "implausible": [
            *(f"{name} was 0 or infinite" for name in impossible),
            *_out_of_range(row),
            *_of_counts(row),
            *_of_latencies(row),
        ],
    }
    return [Doubt(flag, "; ".join(why)) for flag, why in whys.items() if why]


def _far(value: float | None, want: float | None, tolerance: float) -> bool:
    """Tell whether two known values differ by more than the tolerance."""
    return value is not None and want is not None and abs(value - want) > tolerance * abs(want)


def _partial(row: Row, unanswered: int) -> Iterator[str]:
    asked, completed, failed = row.get("asked"), row["completed"], row.get("failed")
    if asked is not None and completed < asked:
        yield f"{completed} of {asked} requests completed"
    elif failed:
        yield f"{failed} requests failed"
    if unanswered:
        yield f"{unanswered} requests that count as completed brought no token or no text"


def _cache_hits(row: Row) -> Iterator[str]:
    share = row.get("cached_share") or 0.0
    # where prompts share a prefix by design, a hit is the load and no fault
    if share > _CACHED and str(row.get("dataset") or "").startswith("random"):
        yield f"{100 * share:.1f} % of the prompt tokens came from the prefix cache"


def _length_mismatch(row: Row) -> Iterator[str]:
    for direction in ("input", "output"):
        tokens, length = row.get(f"{direction}_tokens"), row.get(f"{direction}_len")
        mean = None if tokens is None else tokens / row["completed"]
        if _far(mean, length, LENGTH_TOLERANCE):
            yield f"{mean:.4g} {direction} tokens per request, {length} were asked for"
    tokens, again = row.get("output_tokens"), row.get("output_tokens_retokenized")
    if tokens == 0:
        yield "requests completed and no output token was counted"
    elif tokens and again is not None and not RECOUNT[0] <= again / tokens <= RECOUNT[1]:
        yield f"{tokens} output tokens were counted, their text has {again}"


def _out_of_range(row: Row) -> Iterator[str]:
    for name, value in row.items():
        allowed = range_of(name)
        if allowed is not None and value is not None and not allowed[0] <= value <= allowed[1]:
            yield f"{name} is {value:.6g}, possible is {allowed[0]:g} to {allowed[1]:g}"


def _of_counts(row: Row) -> Iterator[str]:
    asked, completed, failed = row.get("asked"), row["completed"], row.get("failed")
    if asked is not None and completed > asked:
        yield f"{completed} requests completed, {asked} were asked"
    elif None not in (asked, failed) and completed + failed != asked:
        yield f"{completed} completed and {failed} failed of {asked} requests"
    seconds, tokens, prompt = row["duration_s"], row.get("output_tokens"), row.get("input_tokens")
    both = None if tokens is None or prompt is None else tokens + prompt
    for rate, amount in (("output_tok_s", tokens), ("total_tok_s", both), ("request_s", completed)):
        value = row.get(rate)
        if value is not None and amount and _far(value * seconds, amount, CONTRADICTION):
            yield f"{rate} is {value:.6g}, its counts say {amount} in {seconds:.4g} s"
    whole_ms, flight = row.get("e2e_ms_mean"), row.get("concurrency_mean")
    if whole_ms is not None and seconds > 0:
        want = completed * whole_ms / 1e3 / seconds  # Little's law; tells a wrong unit
        if _far(flight, want, CONTRADICTION):
            yield f"E2E and duration say {want:.4g} requests in flight, the tool {flight:.4g}"


def _of_latencies(row: Row) -> Iterator[str]:
    further = [row.get(f"{latency}_ms_{stat}") for latency in ("tpot", "itl") for stat in STATS]
    if single_token(row) and any(further):
        yield "one output token per request, and time between tokens"
    run_ms = 1e3 * row["duration_s"]
    for latency in LATENCIES:
        known = {
            stat: value for stat in STATS if (value := row.get(f"{latency}_ms_{stat}")) is not None
        }
        if known and max(known.values()) > run_ms * (1 + CONTRADICTION):
            longest = max(known.values())
            yield f"{latency} of {longest:.6g} ms in a run of {run_ms:.6g} ms"
        rising = [value for stat, value in known.items() if stat != "mean"]
        if any(b < a * (1 - _ROUNDING) for a, b in itertools.pairwise(rising)):
            yield f"percentiles of {latency} fall"
    for stat in STATS:
        first, whole = row.get(f"ttft_ms_{stat}"), row.get(f"e2e_ms_{stat}")
        if first is not None and whole is not None and first > whole * (1 + _ROUNDING):
            yield f"{stat} TTFT is above E2E"
