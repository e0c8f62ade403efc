"""What memory fractions and caps do to the KV pool, and which load points lie above it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sgmatrix.analysis.advice.piece import Advice, counts
from sgmatrix.analysis.ceiling.campaign import CellCeilings

_POOL = "tokens = (free memory x mem_fraction_static - weights) / KV bytes per token"
_RUNNING = "running = min(concurrency, max_running_requests, KV tokens / (input + output / 2))"


def memory_advice(
    ceilings: Mapping[str, CellCeilings],
    loads: Mapping[str, Mapping[str, Mapping[str, object]]],
    axes: Mapping[str, Mapping[str, object]],
    base: str,
) -> Iterator[Advice]:
    """Yield which way each memory fraction moves the pool, and what does not fit into it.

    Args:
        ceilings: by cell.
        loads: load points of `plan.json` by cell and load id.
        axes: values of the axes by cell.
        base: the cell that the others are compared with.
    """
    yield from _fractions(ceilings, axes, base)
    yield from _no_room(ceilings)
    yield from _above(ceilings, loads)


def _fractions(
    ceilings: Mapping[str, CellCeilings], axes: Mapping[str, Mapping[str, object]], base: str
) -> Iterator[Advice]:
    mine = axes.get(base, {})
    start = ceilings[base].server.pool if base in ceilings else None
    if start is None:
        return
    for name, one in ceilings.items():
        fraction, pool = axes[name].get("mem_fraction"), one.server.pool
        same = {k: v for k, v in axes[name].items() if k != "mem_fraction"} == {
            k: v for k, v in mine.items() if k != "mem_fraction"
        }
        if not same or pool is None or pool.tokens == start.tokens:
            continue
        way = "shrinks" if pool.tokens < start.tokens else "grows"
        yield Advice(
            "mem_fraction",
            f"{fraction} instead of {mine.get('mem_fraction')}: the KV pool {way} from "
            f"{start.tokens:,} to {pool.tokens:,} tokens; a smaller fraction never gives more",
            _POOL,
            (name,),
        )


def _no_room(ceilings: Mapping[str, CellCeilings]) -> Iterator[Advice]:
    names = tuple(
        name
        for name, one in ceilings.items()
        if one.points and all(at is None for at in one.points.values())
    )
    short = [
        -pool.device_bytes
        for name in names
        if (pool := ceilings[name].server.pool) and pool.device_bytes and pool.device_bytes < 0
    ]
    if names:
        least = f"; they miss {min(short) / 2**30:,.1f} GiB per device or more" if short else ""
        yield Advice(
            "no_room",
            f"the weights leave no place in the KV pool for one request{least}",
            _POOL,
            names,
        )


def _above(
    ceilings: Mapping[str, CellCeilings], loads: Mapping[str, Mapping[str, Mapping[str, object]]]
) -> Iterator[Advice]:
    """Yield the load points at which requests have to wait, cells alike together."""
    alike: dict[tuple[int, tuple[int, ...], str], list[str]] = {}
    for name, one in ceilings.items():
        above: dict[int, tuple[float, str]] = {}
        for load, at in one.points.items():
            asked = (loads.get(name, {}).get(load) or {}).get("concurrency")
            if at is None or not isinstance(asked, int) or at.practical.running >= asked:
                continue
            cap = one.server.max_running
            by = "max_running_requests" if cap == at.practical.running else "the KV pool"
            above.setdefault(asked, (at.practical.running, by))  # at the load's own lengths
        if above:
            running, by = above[max(above)]
            key = (int(running), tuple(sorted(above)), by)
            alike.setdefault(key, []).append(name)
    for (running, points, by), names in alike.items():
        yield Advice(
            "above_pool",
            f"at concurrency {counts(points)} requests wait: {by} lets {running:,} run at once",
            _RUNNING,
            tuple(names),
        )
