"""What is not to be trusted about a point: flags that never hide its numbers, each with its why.

One rule per flag, in the order of `core.flags`; thresholds come from the campaign
(`validity`), the rules are in docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sgmatrix.load.evidence import Evidence
from sgmatrix.load.offer import in_flight
from sgmatrix.load.serverview import MIN_LINES

Limits = Mapping[str, float]

_SLACK = 1.05
"""What rounding and the client's own clock may add to a bound that physics sets."""
_ARRIVING_SHARE = 0.5
"""Part of a point during which requests still arrive, from which on the rate is its limit."""
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
    if ok < limits["min_completed_share"] * len(e.rows):
        yield f"{len(e.rows) - ok} of {len(e.rows)} requests failed"


def _rate_limited(e: Evidence, limits: Limits) -> Iterator[str]:
    rate = e.point.get("request_rate")
    if rate is None or _is_saturated(e, limits):
        return
    mean, most = e.metrics.get("concurrency_mean"), e.point.get("max_concurrency")
    if most is None:
        came_s, duration_s = (len(e.rows) - 1) / rate, e.metrics.get("duration_s")
        if duration_s and came_s >= _ARRIVING_SHARE * duration_s:
            ran = f", {mean:.2g} of them at once" if mean is not None else ""
            yield f"requests came for {came_s:.3g} of {duration_s:.3g} s, {rate:g} a second{ran}"
    elif mean is None or mean < limits["min_load_share"] * most:
        ran = "fewer" if mean is None else f"{mean:.2g}"
        yield f"at {rate:g} requests/s {ran} of at most {most} requests were in flight"


def _client_limited(e: Evidence, limits: Limits) -> Iterator[str]:
    use = e.client
    if use is not None and use.cpu_cores > limits["max_client_cpu_share"] * use.cpus:
        yield f"the load client used {use.cpu_cores:.2f} of {use.cpus} CPUs"
    if use is not None and use.delay_share > limits["max_client_delay_share"]:
        yield f"the load client waited {100 * use.delay_share:.0f} % of the time for a CPU"
    own, seen = e.server.tpot_ms, e.metrics.get("tpot_ms_mean")
    if own and seen and seen > (1 + limits["max_client_gap"]) * own:
        yield f"TPOT is {seen:.3g} ms at the client, {own:.3g} ms at the server"


def _queue_limited(e: Evidence, limits: Limits) -> Iterator[str]:
    view = e.server
    asked = in_flight(e.point)
    if view.retracted:
        yield f"{view.retracted} running requests were retracted, the KV pool was full{_pool(e)}"
    if _is_saturated(e, limits):
        most = f", {view.running_max} ran at the most" if view.running_max is not None else ""
        of = f" of {asked} requests" if asked else ""
        yield f"up to {view.queued_max}{of} waited for a place{most}{_pool(e)}"
        return
    cap = e.pool.get("max_running_requests")
    ranks = e.pool.get("dp_size") or 1
    if asked and isinstance(cap, int) and cap * ranks < asked and view.decode_lines < MIN_LINES:
        yield f"the server runs {cap * ranks} requests at once, {asked} were offered{_pool(e)}"


def _is_saturated(e: Evidence, limits: Limits) -> bool:
    share = e.server.queued_share
    return share is not None and share > limits["max_queued_share"]


def _pool(e: Evidence) -> str:
    tokens = e.pool.get("max_total_num_tokens")
    return f"; its KV pool holds {tokens} tokens" if isinstance(tokens, int) else ""


def _cold(e: Evidence, _limits: Limits) -> Iterator[str]:
    if e.cold is not None:
        yield e.cold


def _cache_hits(e: Evidence, limits: Limits) -> Iterator[str]:
    if not e.cache_flushed:
        yield "the server did not empty its prefix cache before"
    share = e.server.cached_share or 0.0
    # prompts that begin alike are there to be found in the cache
    all_different = e.point["dataset"] in ("random-ids", "topical")
    if all_different and share > limits["max_cached_share"]:
        yield f"{100 * share:.1f} % of the prompt tokens came from the prefix cache"


def _length_mismatch(e: Evidence, limits: Limits) -> Iterator[str]:
    ok = [row for row in e.rows if row["ok"]]
    tolerance = limits["length_tolerance"]
    # one by one: an error inside a stream ends a request early, and is no error to the client
    off = [
        row
        for row in ok
        if abs(row["output_tokens"] - row["requested_output_tokens"])
        > tolerance * row["requested_output_tokens"]
    ]
    if off:
        yield (
            f"{len(off)} of {len(ok)} requests gave other numbers of tokens than asked, the first "
            f"{off[0]['output_tokens']} of {off[0]['requested_output_tokens']}"
        )
    if e.point["dataset"] == "random-ids" and ok:
        mean, asked = sum(row["input_tokens"] for row in ok) / len(ok), e.point["input_len"]
        if abs(mean - asked) > tolerance * asked:
            yield f"prompts had {mean:.0f} tokens, {asked} were asked for"


def _implausible(e: Evidence, _limits: Limits) -> Iterator[str]:
    ok = [row for row in e.rows if row["ok"]]
    if any(row["e2e_ms"] <= 0 or row["ttft_ms"] > row["e2e_ms"] * (1 + 1e-9) for row in ok):
        yield "a first token came after the last one"
    if any(row["output_tokens"] > 1 and not row["tpot_ms"] for row in ok):
        yield "tokens came in no time, or all in one piece"
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
    if rate and peak and e.server.decode_lines > MIN_LINES and rate > _SLACK * peak:
        yield f"{rate:.0f} decoded tok/s at the client, the server made {peak:.0f} at the most"


def _decode_tok_s(e: Evidence) -> float | None:
    """Return the rate of all tokens but the first ones, which come from the prefill."""
    duration_s = e.metrics.get("duration_s")
    if not duration_s:
        return None
    further: int = sum(row["output_tokens"] - 1 for row in e.rows if row["ok"])
    return further / float(duration_s)


def _foreign_load(e: Evidence, limits: Limits) -> Iterator[str]:
    around = e.surroundings
    if around.foreign_share is not None and around.foreign_share > limits["max_foreign_share"]:
        yield f"other processes used {100 * around.foreign_share:.0f} % of the CPUs"
    if around.foreign_pids:
        yield f"other processes on the GPUs: {', '.join(map(str, around.foreign_pids))}"


def _throttled(e: Evidence, limits: Limits) -> Iterator[str]:
    for reason in _HARMFUL:
        share = e.surroundings.throttled.get(reason, 0.0)
        if share > limits["max_throttled_share"]:
            yield f"{reason} in {100 * share:.0f} % of the time"


def _no_telemetry(e: Evidence, limits: Limits) -> Iterator[str]:
    for source, share in e.surroundings.coverage.items():
        if share < limits["min_telemetry_share"]:
            told = [one for one in e.surroundings.errors if one.startswith((source, "sampler"))]
            yield ": ".join([f"{100 * share:.0f} % of the samples of {source}", *told[:1]])


_RULES: dict[str, Callable[[Evidence, Limits], Iterator[str]]] = {
    "partial": _partial,
    "rate_limited": _rate_limited,
    "client_limited": _client_limited,
    "queue_limited": _queue_limited,
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
