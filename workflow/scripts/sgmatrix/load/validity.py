"""What is not to be trusted about a point: flags that never hide its numbers, each with its why.

One rule per flag, in the order of `core.flags`; thresholds come from the campaign
(`validity`), the rules are in docs/metrics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgmatrix.load.evidence import Evidence
from sgmatrix.load.limited import Limits, client_limited, is_above, queue_limited, rate_limited
from sgmatrix.load.offer import in_flight
from sgmatrix.load.serverview import MIN_LINES

_SLACK = 1.05
"""What rounding and the client's own clock may add to a bound that physics sets."""
_HARMFUL = ("hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake")
"""Reasons for lower clocks that are a fault of the machine; its power limit is a property."""


@dataclass(frozen=True)
class Finding:
    """One flag of a point."""

    flag: str
    why: str


def findings(evidence: Evidence, limits: Limits) -> list[Finding]:
    """Return the flags of a point that has at least one ok request; empty means valid.

    Args:
        evidence: the point.
        limits: `validity` of the campaign.
    """
    return [
        Finding(flag, "; ".join(whys))
        for flag, rule in _RULES.items()
        if (whys := list(rule(evidence, limits)))
    ]


def _partial(e: Evidence, limits: Limits) -> Iterator[str]:
    ok = sum(row["ok"] for row in e.rows)
    if is_above(limits["min_completed_share"] * len(e.rows), ok):
        yield f"{len(e.rows) - ok} of {len(e.rows)} requests failed"


def _cold(e: Evidence, _limits: Limits) -> Iterator[str]:
    if e.cold is not None:
        yield e.cold


def _cache_hits(e: Evidence, limits: Limits) -> Iterator[str]:
    if not e.cache_flushed:
        yield "the server did not empty its prefix cache before"
    share = e.server.cached_share or 0.0
    # prompts that begin alike are there to be found in the cache
    all_different = e.point["dataset"] in ("random-ids", "topical")
    by_chance = _repeated_share(len(e.rows), e.vocab_size) if e.point["dataset"] != "topical" else 0
    if all_different and is_above(share, limits["max_cached_share"] + by_chance):
        chance = f", {100 * by_chance:.1f} % may by chance" if by_chance >= 0.001 else ""
        yield f"{100 * share:.1f} % of the prompt tokens came from the prefix cache{chance}"


def _repeated_share(requests: int, vocab_size: int | None) -> float:
    """Return the share of `random-ids` prompts that may repeat an earlier one, by chance.

    SGLang's clients count a prompt up from its first id, which alone is random: of n prompts
    with one of V first ids each, 1 - V/n (1 - exp(-n/V)) repeat one in the mean, with a scatter
    of 1/sqrt(2 V), of which two are allowed.

    Source  benchmark/datasets/random.py of SGLang 0.5.23; the mean number of values that n
            draws of V leave out, V exp(-n/V).
    """
    if not vocab_size or requests < 2:
        return 0.0
    each = requests / vocab_size
    return 1 - (1 - math.exp(-each)) / each + 2 / math.sqrt(2 * vocab_size)


def _length_mismatch(e: Evidence, limits: Limits) -> Iterator[str]:
    ok = [row for row in e.rows if row["ok"]]
    tolerance = limits["length_tolerance"]
    # one by one: an error inside a stream ends a request early, and is no error to the client
    off = [
        row
        for row in ok
        if is_above(
            abs(row["output_tokens"] - row["requested_output_tokens"]),
            tolerance * row["requested_output_tokens"],
        )
    ]
    if off:
        yield (
            f"{len(off)} of {len(ok)} requests gave other numbers of tokens than asked, the first "
            f"{off[0]['output_tokens']} of {off[0]['requested_output_tokens']}"
        )
    if e.point["dataset"] == "random-ids" and ok:
        mean, asked = sum(row["input_tokens"] for row in ok) / len(ok), e.point["input_len"]
        if is_above(abs(mean - asked), tolerance * asked):
            yield f"prompts had {mean:.0f} tokens, {asked} were asked for"


def _implausible(e: Evidence, _limits: Limits) -> Iterator[str]:
    ok = [row for row in e.rows if row["ok"]]
    if any(row["e2e_ms"] <= 0 or row["ttft_ms"] > row["e2e_ms"] * (1 + 1e-9) for row in ok):
        yield "a first token came after the last one"
    if any(row["output_tokens"] > 1 and not row["tpot_ms"] for row in ok):
        yield "tokens came in no time, or all in one piece"
    yield from _first_pieces(ok)
    short = sum(row["output_tokens"] < row["requested_output_tokens"] for row in ok)
    if short and e.stream_errors:
        # SGLang's client looks at the text of a stream and not at an error in it
        yield (
            f"{short} answers with HTTP 200 ended early, and the server logged "
            f"{len(e.stream_errors)} errors, the first: {e.stream_errors[0]}"
        )
    mean, most = e.metrics.get("concurrency_mean"), in_flight(e.point)
    if mean is not None and most is not None and mean > _SLACK * most:
        yield f"latencies and duration say {mean:.3g} requests in flight, {most} were allowed"
    rate, peak = _decode_tok_s(e), e.server.peak_output_tok_s
    # of each rank: the first rate of a rank counts the idle time before it
    if rate and peak and e.server.rank_lines > MIN_LINES and rate > _SLACK * peak:
        yield f"{rate:.0f} decoded tok/s at the client, the server made {peak:.0f} at the most"


def _first_pieces(ok: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Tell of a TPOT that is too low because first pieces held many tokens.

    It counts every token after the first, while the time runs from the first piece on: text that
    cannot be shown yet (special tokens, a character cut in two) is held back.
    """
    timed = [row for row in ok if row["tpot_ms"] and row["itl_ms"]]
    told_ms = math.fsum(row["tpot_ms"] for row in timed)
    seen_ms = math.fsum(math.fsum(row["itl_ms"]) / len(row["itl_ms"]) for row in timed)
    if is_above(seen_ms, _SLACK * told_ms):
        n = len(timed)
        yield (
            f"TPOT is {told_ms / n:.3g} ms, and tokens came {seen_ms / n:.3g} ms apart: the first "
            "pieces held many"
        )


def _decode_tok_s(e: Evidence) -> float | None:
    """Return the rate of all tokens but the first ones, which come from the prefill."""
    duration_s = e.metrics.get("duration_s")
    if not duration_s:
        return None
    further: int = sum(row["output_tokens"] - 1 for row in e.rows if row["ok"])
    return further / float(duration_s)


def _foreign_load(e: Evidence, limits: Limits) -> Iterator[str]:
    around = e.surroundings
    if around.foreign_share is not None and is_above(
        around.foreign_share, limits["max_foreign_share"]
    ):
        yield f"other processes used {100 * around.foreign_share:.0f} % of the CPUs"
    if around.foreign_pids:
        yield f"other processes on the GPUs: {', '.join(map(str, around.foreign_pids))}"


def _throttled(e: Evidence, limits: Limits) -> Iterator[str]:
    for reason in _HARMFUL:
        share = e.surroundings.throttled.get(reason, 0.0)
        if is_above(share, limits["max_throttled_share"]):
            yield f"{reason} in {100 * share:.0f} % of the time"


def _no_telemetry(e: Evidence, limits: Limits) -> Iterator[str]:
    for source, share in e.surroundings.coverage.items():
        if is_above(limits["min_telemetry_share"], share):
            told = [one for one in e.surroundings.errors if one.startswith((source, "sampler"))]
            yield ": ".join([f"{100 * share:.0f} % of the samples of {source}", *told[:1]])


_RULES: dict[str, Callable[[Evidence, Limits], Iterator[str]]] = {
    "partial": _partial,
    "rate_limited": rate_limited,
    "client_limited": client_limited,
    "queue_limited": queue_limited,
    "cold": _cold,
    "cache_hits": _cache_hits,
    "length_mismatch": _length_mismatch,
    "implausible": _implausible,
    "foreign_load": _foreign_load,
    "throttled": _throttled,
    "no_telemetry": _no_telemetry,
}


def validity_columns(found: list[Finding]) -> dict[str, Any]:
    """Return `validity` and `validity_detail` of a point."""
    return {
        "validity": ",".join(one.flag for one in found) or "valid",
        "validity_detail": " | ".join(f"{one.flag}: {one.why}" for one in found) or None,
    }
