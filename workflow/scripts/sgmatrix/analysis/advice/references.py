"""What the results and claims of a reference are worth, held against the ceilings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sgmatrix.analysis.advice.piece import Advice, counts
from sgmatrix.analysis.ceiling.closed_loop import Ceiling, Server, ceiling
from sgmatrix.analysis.ceiling.inputs import server_of
from sgmatrix.analysis.ceiling.links import Tier
from sgmatrix.core.facts.hardware import Device
from sgmatrix.core.facts.model import Shape
from sgmatrix.core.facts.references import Claim, Reference

_MEASURED = ("exact", "approx")
_RATIO_TOLERANCE = 0.05
"""By how much total over output may miss what the lengths give."""
_PEAK_TOLERANCE = 1.5
"""A second may hold more than the mean rate; more than half as much again is counted wrongly."""


def reference_advice(reference: Reference, model: Shape, device: Device) -> Iterator[Advice]:
    """Yield what does not hold of a reference's numbers and claims.

    Args:
        reference: its results.
        model: the shape that its ceilings are computed of.
        device: likewise.
    """
    # its KV format and memory fraction are rarely told, so that no pool is taken to bind
    server = replace(server_of({"flags": reference.file.flags}, model, device), pool=None)
    yield from _ratios(reference)
    yield from _peaks(reference)
    for claim in reference.file.claims:
        yield from _claim(reference, claim, server)


def _series(reference: Reference) -> list[str]:
    return list(dict.fromkeys(one.series for one in reference.results))


def _points(reference: Reference, series: str, metric: str) -> dict[int, float]:
    return {
        one.concurrency: one.value
        for one in reference.results
        if one.series == series
        and one.metric == metric
        and one.qualifier in _MEASURED
        and one.concurrency is not None
        and one.value
    }


def _ratios(reference: Reference) -> Iterator[Advice]:
    """Total over output throughput follows from the lengths alone, whatever is served."""
    file = reference.file
    given = (file.input_len + file.output_len) / file.output_len
    for series in _series(reference):
        totals = _points(reference, series, "total_tok_s")
        outputs = _points(reference, series, "output_tok_s")
        ratios = {at: totals[at] / outputs[at] for at in totals.keys() & outputs.keys()}
        wrong = {at: r for at, r in ratios.items() if abs(r / given - 1) > _RATIO_TOLERANCE}
        if wrong:
            low, high = min(wrong.values()), max(wrong.values())
            span = f"{low:.2f}" if high - low < 0.005 else f"{low:.2f} to {high:.2f}"
            yield Advice(
                "lengths",
                f"{file.name}, {series}: total over output throughput is {span} at concurrency "
                f"{counts(wrong)}; {file.input_len} tokens in and {file.output_len} out give "
                f"{given:.2f}, so it was measured with other lengths",
                "total / output = (input_len + output_len) / output_len",
            )


def _peaks(reference: Reference) -> Iterator[Advice]:
    """C requests that take TPOT per token cannot yield more than C / TPOT for long."""
    for series in _series(reference):
        peaks = _points(reference, series, "peak_output_tok_s")
        tpots = _points(reference, series, "tpot_ms")
        for at in sorted(peaks.keys() & tpots.keys()):
            most = at / (tpots[at] / 1e3)
            if peaks[at] > _PEAK_TOLERANCE * most:
                yield Advice(
                    "peak",
                    f"{reference.file.name}, {series}: a peak of {peaks[at]:,.0f} tok/s at "
                    f"concurrency {at:,} is {peaks[at] / most:.1f} times what its own TPOT of "
                    f"{tpots[at]:g} ms allows ({most:,.0f}); a count of 1-second buckets of "
                    "the client, not a rate",
                    "concurrency / TPOT",
                )


def _claim(reference: Reference, claim: Claim, server: Server) -> Iterator[Advice]:
    said = f'{reference.file.name} says "{claim.text}"'
    if claim.says == "smaller_fraction_gives_more_cache":
        yield Advice(
            "mem_fraction",
            f"{said}: it has the wrong sign, weights and KV pool share the fraction, so that a "
            "smaller one leaves fewer tokens",
            "tokens = (free memory x mem_fraction_static - weights) / KV bytes per token",
        )
    elif claim.says == "compute_bound":
        yield from _compute_bound(reference, said, server)
    else:
        yield from _single_stream(reference, said, server)


def _at(reference: Reference, server: Server, concurrency: int, tier: Tier) -> Ceiling:
    file = reference.file
    return ceiling(
        server,
        tier,
        concurrency=concurrency,
        input_len=file.input_len,
        output_len=file.output_len,
    )


def _measured(reference: Reference, metric: str) -> dict[int, float]:
    """Return the best value of all series by concurrency: the lowest TPOT, the highest rate."""
    best: dict[int, float] = {}
    for series in _series(reference):
        if _is_of_another_model(reference, series):
            continue
        for at, value in _points(reference, series, metric).items():
            better = min if metric == "tpot_ms" else max
            best[at] = better(best.get(at, value), value)
    return best


def _is_of_another_model(reference: Reference, series: str) -> bool:
    return any(one.series == series and "model=" in one.flags for one in reference.results)


def _compute_bound(reference: Reference, said: str, server: Server) -> Iterator[Advice]:
    tpots = _measured(reference, "tpot_ms")
    if not tpots:
        return
    shares = {}
    for at, tpot in tpots.items():
        step = _at(reference, server, at, "hard").step
        shares[at] = (1e3 * step.compute_s / tpot, 1e3 * step.link_s / tpot)
    widest = max(shares)
    compute = max(one[0] for one in shares.values())
    practical = _at(reference, server, widest, "practical")
    yield Advice(
        "claim",
        f"{said}: multiplying takes at most {100 * compute:.0f} % of its TPOT at any load point; "
        f"at concurrency {widest:,} the links take {100 * shares[widest][1]:.0f} % and bind in the "
        f"ceiling ({practical.bound}); neither explains the step",
        "FLOP of a step / peak rate / TPOT; messages / peak link rate / TPOT",
    )


def _single_stream(reference: Reference, said: str, server: Server) -> Iterator[Advice]:
    rates = _measured(reference, "output_tok_s")
    if 1 not in rates:
        return
    hard, practical = (1 / _at(reference, server, 1, tier).tpot_s for tier in ("hard", "practical"))
    share = 100 * rates[1] / practical
    yield Advice(
        "claim",
        f"{said}: the ceiling of a single stream is {hard:,.0f} tok/s hard and {practical:,.0f} "
        f"practical, without speculation; its {rates[1]:g} tok/s are {share:.0f} % of that: no "
        "roof is near, what binds is the host",
        "1 / decode step at batch 1",
    )
