"""What is true of a load that the lock-step server answered, and how far a client was off.

TTFT  from a request's first byte, read by the server, to its first token, handed to the kernel.
TPOT  (last token - first token) / (tokens - 1) of a request.
ITL   from a token to the next one of the same request; p99 over all gaps of all requests.
Means are over requests. These are the definitions of `docs/metrics.md`, seen from the server.

Not here  any I/O.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

from perf.lockstep.server import Record
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.load.result import percentile


@dataclass(frozen=True)
class Truth:
    """The load as the server's record has it; times in milliseconds."""

    requests: int
    tokens: int
    ttft_ms: float
    tpot_ms: float
    itl_p99_ms: float
    concurrency: float
    """Requests in flight, a mean over the time from the first arrival to the last token."""


@dataclass(frozen=True)
class Errors:
    """What a client reported less what is true; positive where it reported more."""

    ttft_ms: float
    tpot_percent: float
    itl_p99_ms: float


def truth_of(record: Record) -> Truth:
    """Return what is true of a load.

    Raises:
        SgmatrixError: `cut_short` when a request did not get all its tokens, or got fewer than
            two, or when there was none: such a load has no TPOT.
    """
    short = [one for one in record.requests if len(one.sent_us) != one.asked or one.asked < 2]
    if short or not record.requests:
        raise SgmatrixError(
            "cut_short",
            f"{len(short)} of {len(record.requests)} requests got not all their tokens, or one",
            fix="ask for 2 tokens or more; see why the client went away",
        )
    times = [one.sent_us for one in record.requests]
    gaps_us = sorted(b - a for sent in times for a, b in itertools.pairwise(sent))
    in_flight_us = sum(one.sent_us[-1] - one.arrived_us for one in record.requests)
    from_us = min(one.arrived_us for one in record.requests)
    count = len(times)
    return Truth(
        requests=count,
        tokens=sum(map(len, times)),
        ttft_ms=sum(one.sent_us[0] - one.arrived_us for one in record.requests) / count / 1e3,
        tpot_ms=math.fsum((s[-1] - s[0]) / (len(s) - 1) for s in times) / count / 1e3,
        itl_p99_ms=percentile(gaps_us, 99) / 1e3,
        concurrency=in_flight_us / (max(sent[-1] for sent in times) - from_us),
    )


def errors_of(truth: Truth, reported: Mapping[str, float | int | None]) -> Errors:
    """Return how far the metrics of a point (`load.result.summarise`) are off.

    Raises:
        SgmatrixError: `client_crash` when the client reported other requests than were served,
            or no latency.
    """
    ttft, tpot, itl = (
        reported.get(name) for name in ("ttft_ms_mean", "tpot_ms_mean", "itl_ms_p99")
    )
    if reported.get("completed") != truth.requests or ttft is None or tpot is None or itl is None:
        raise SgmatrixError(
            "client_crash",
            f"the client completed {reported.get('completed')} requests with ttft {ttft}, "
            f"tpot {tpot}, itl {itl}; {truth.requests} were served",
        )
    return Errors(
        ttft_ms=ttft - truth.ttft_ms,
        tpot_percent=100 * (tpot / truth.tpot_ms - 1),
        itl_p99_ms=itl - truth.itl_p99_ms,
    )
