"""What limited a load point where it was not the server alone: the rate, the client, a queue.

Rules of three validity flags; each yields its whys. The others are in `load.validity`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from sgmatrix.load.evidence import Evidence
from sgmatrix.load.offer import in_flight
from sgmatrix.load.serverview import MIN_LINES
from sgmatrix.load.timeline import course_s

Limits = Mapping[str, float]

_ARRIVING_SHARE = 0.1
"""Part of a point in which requests arrive, above which the rate has a part in its throughput;
below, they came in one burst, and how fast it was served is the server's doing."""
_LATE = 2.65
"""Standard deviations of the span of the arrivals: a last request that is sent so late was held
back by the cap, and not by chance (once in a hundred times with Poisson arrivals of 8)."""
_ONCE_S = 0.5
"""What a client may do once within its duration, such as its question for /server_info."""
_GROWTH = 1.5
"""E2E of the last third of the requests over the first, from which on a server falls behind."""


def is_above(value: float, bound: float) -> bool:
    """Tell whether a value is above a bound by more than arithmetic adds to it."""
    return value > bound + 1e-9 * abs(bound)


def is_saturated(e: Evidence, limits: Limits) -> bool:
    """Tell whether requests had to wait at the server."""
    share = e.server.queued_share
    return share is not None and is_above(share, limits["max_queued_share"])


def rate_limited(e: Evidence, limits: Limits) -> Iterator[str]:
    """Open loop: the server had room for more than came."""
    rate = e.point.get("request_rate")
    if rate is None or is_saturated(e, limits) or e.server.retracted:
        return
    mean, most = e.metrics.get("concurrency_mean"), e.point.get("max_concurrency")
    came_s, duration_s = (len(e.rows) - 1) / rate, e.metrics.get("duration_s") or math.inf
    if most is None:
        if is_above(came_s, _ARRIVING_SHARE * duration_s) and not _falls_behind(e):
            ran = f", {mean:.2g} of them at once" if mean is not None else ""
            yield (
                f"{len(e.rows)} requests, {rate:g} a second, come for about {came_s:.3g} of the "
                f"{duration_s:.3g} s and had no queue{ran}"
            )
    elif not _fills_its_cap(e, came_s, limits["min_load_share"] * most):
        ran = "not all" if mean is None else f"{mean:.2g}"
        yield f"at {rate:g} requests/s {ran} of at most {most} requests were in flight"


def _falls_behind(e: Evidence) -> bool:
    """Tell whether requests took longer and longer, though none waited for a place."""
    ok = [row["e2e_ms"] for row in e.rows if row["ok"]]
    third = len(ok) // 3
    return bool(third) and is_above(math.fsum(ok[-third:]), _GROWTH * math.fsum(ok[:third]))


def _fills_its_cap(e: Evidence, came_s: float, enough: float) -> bool:
    """Tell whether the requests in flight were as many as allowed, or were held back by that.

    Args:
        e: the point.
        came_s: for how long requests are expected to arrive where nothing holds them back.
        enough: requests in flight that count as all.
    """
    ok_s = [row["e2e_ms"] / 1e3 for row in e.rows if row["ok"]]
    duration_s = e.metrics.get("duration_s")
    if not duration_s or not ok_s:
        return False
    # of a failed request it is not known how long it was in flight: these are at the least
    if not is_above(enough, math.fsum(ok_s) / duration_s):
        return True
    # ramp and tail of few waves lower the mean of a cap that is full
    # gaps of a gamma distribution whose shape is the burstiness
    spread = 1 / math.sqrt(max(len(e.rows) - 1, 1) * (e.point.get("burstiness") or 1.0))
    return is_above(duration_s - max(ok_s), (1 + _LATE * spread) * came_s)


def client_limited(e: Evidence, limits: Limits) -> Iterator[str]:
    """The load client took too much of the machine, or saw other times than the server."""
    use = e.client
    if use is not None:
        share = limits["max_python_client_cpu_share" if use.one_thread else "max_client_cpu_share"]
        if is_above(use.cpu_cores, share * use.cpus):
            of = "the one CPU that it can use" if use.one_thread else f"{use.cpus} CPUs"
            yield f"the load client used {use.cpu_cores:.2f} of {of}"
        if is_above(use.delay_share, limits["max_client_delay_share"]):
            yield f"the load client waited {100 * use.delay_share:.0f} % of the time for a CPU"
    yield from _other_steps(e, limits)
    yield from _empty_places(e, limits)


def _other_steps(e: Evidence, limits: Limits) -> Iterator[str]:
    """Tell of tokens that came at other times than the server's steps made them.

    By what is sure: which steps a prefill was in is known, and not how long they would have been.
    """
    steps, gap = e.server.steps, 1 + limits["max_client_gap"]
    usual_ms, mean_ms = e.metrics.get("itl_ms_p50"), e.metrics.get("itl_ms_mean")
    if steps is None:
        return
    if usual_ms and is_above(usual_ms, gap * steps.most_median_ms):
        yield (
            f"the median time between tokens is {usual_ms:.3g} ms at the client, a step of the "
            f"server takes {steps.most_median_ms:.3g} ms"
        )
    # prefills make the mean longer; nothing makes it shorter than the steps of the server
    if (
        e.client is not None
        and e.client.one_thread
        and is_above(steps.least_median_ms, gap * (usual_ms or 0))
    ):
        yield (
            f"the median time between tokens is {usual_ms or 0:.3g} ms at the client, a step of "
            f"the server takes {steps.least_median_ms:.3g} ms: it read them in bursts"
        )
    elif mean_ms and is_above(steps.least_mean_ms, gap * mean_ms):
        yield (
            f"tokens came {mean_ms:.3g} ms apart at the client, less than a step of the server, "
            f"{steps.least_mean_ms:.3g} ms"
        )


def _empty_places(e: Evidence, limits: Limits) -> Iterator[str]:
    """Tell of a closed loop in which the client was slow to send the next request.

    So long a place is empty, which no latency counts; in the open loop that is the load.
    """
    asked, duration_s = in_flight(e.point), e.metrics.get("duration_s")
    if e.point.get("request_rate") is not None or not asked or not duration_s:
        return
    if not all(row["ok"] for row in e.rows):
        return  # of a failed request it is not known how long it held its place
    took_s = course_s([row["e2e_ms"] / 1e3 for row in e.rows], asked)
    longest_s = max((1 + limits["max_client_gap"]) * took_s, took_s + _ONCE_S)
    if is_above(duration_s, longest_s):
        yield (
            f"the requests, {asked} at once, account for {took_s:.3g} of {duration_s:.3g} s: the "
            "client was slow to send the next ones"
        )


def queue_limited(e: Evidence, limits: Limits) -> Iterator[str]:
    """Requests waited for a place at the server."""
    view = e.server
    asked = in_flight(e.point)
    if view.retracted:
        yield f"{view.retracted} running requests were retracted, the KV pool was full{_pool(e)}"
    if is_saturated(e, limits):
        most = f", {view.running_max} ran at the most" if view.running_max is not None else ""
        of = f" of {asked} requests" if asked else ""
        yield f"up to {view.queued_max}{of} waited for a place{most}{_pool(e)}"
        return
    cap = _cap(e.pool)
    if asked and cap is not None and cap < asked and view.decode_lines < MIN_LINES:
        yield f"the server runs {cap} requests at once, {asked} were offered{_pool(e)}"


def _cap(pool: Mapping[str, object]) -> int | None:
    """Return how many requests a server runs at once, all its data-parallel ranks together.

    Each rank says how many it runs. The flag `max_running_requests` is of every rank, but with
    DP attention of all together (`// attn_dp_size` in kv_cache_configurator.py of 0.5.23).
    """
    ranks = pool.get("dp_size") or 1
    each, flag = pool.get("effective_max_running_requests_per_dp"), pool.get("max_running_requests")
    if isinstance(each, int) and isinstance(ranks, int):
        return each * ranks
    if not isinstance(flag, int) or not isinstance(ranks, int):
        return None
    return flag if pool.get("enable_dp_attention") else flag * ranks


def _pool(e: Evidence) -> str:
    tokens = e.pool.get("max_total_num_tokens")
    return f"; its KV pool holds {tokens} tokens" if isinstance(tokens, int) else ""
