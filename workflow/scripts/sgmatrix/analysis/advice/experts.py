"""Where OEA can help, and where all experts are read with it or without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sgmatrix.analysis.advice.piece import Advice, counts
from sgmatrix.analysis.ceiling.campaign import CellCeilings
from sgmatrix.analysis.ceiling.decode import decode_pass
from sgmatrix.analysis.ceiling.forward import Routing

WORTHLESS = 0.01
"""Largest share of a decode step that OEA could save, below which a load point cannot show it."""

_FORMULA = (
    "practical step with E(1-(1-k0/E)^B) experts against E(1-(1-k/E)^B), routing taken as even"
)


def oea_advice(
    ceilings: Mapping[str, CellCeilings], loads: Mapping[str, Mapping[str, Mapping[str, object]]]
) -> Iterator[Advice]:
    """Yield for each cell with OEA at which of its load points it can pay, and at which not.

    Args:
        ceilings: by cell.
        loads: load points of `plan.json` by cell and load id.
    """
    for name, one in ceilings.items():
        routing = one.server.routing
        if routing is None or routing.free_experts is None:
            continue
        savings = _savings(one, loads.get(name, {}))
        if not savings:
            continue
        moe = one.server.model.moe
        if moe is not None and routing.free_experts >= moe.top_k:
            continue  # it routes as the model does, to tell what the plug-in itself costs
        k0 = f"k0 = {routing.free_experts:g}"
        lost = {at: saved for at, saved in savings.items() if saved < WORTHLESS}
        worth = {at: saved for at, saved in savings.items() if saved >= WORTHLESS}
        if lost:
            most = max(lost.values())
            yield Advice(
                "oea_saturated",
                f"at concurrency {counts(lost)} all experts are read with {k0} or without it: at "
                f"most {100 * most:.1f} % of a step can be saved there",
                _FORMULA,
                (name,),
            )
        if worth:
            told = ", ".join(
                f"{100 * saved:.0f} % at {at:,}" for at, saved in sorted(worth.items())
            )
            yield Advice(
                "oea_bound",
                f"{k0} can save of a decode step at the most: {told}",
                _FORMULA,
                (name,),
            )


def _savings(one: CellCeilings, loads: Mapping[str, Mapping[str, object]]) -> dict[int, float]:
    """Return the share of a decode step that OEA can save, by concurrency."""
    server = one.server
    off = Routing() if server.routing is None else replace(server.routing, free_experts=None)
    found: dict[int, float] = {}
    for load, at in one.points.items():
        concurrency = (loads.get(load) or {}).get("concurrency")
        if at is None or not isinstance(concurrency, int) or concurrency in found:
            continue  # the load's own lengths come first
        step = at.practical.step
        point = loads[load]
        context = float(point["input_len"]) + float(point["output_len"]) / 2  # type: ignore[arg-type]
        without = decode_pass(
            server.model,
            server.device,
            server.parallel,
            "practical",
            batch=max(1.0, at.practical.running / server.parallel.replicas),
            context=context,
            spread=float(point["output_len"]) / 2,  # type: ignore[arg-type]
            routing=off,
            speculation=server.speculation,
        )
        found[concurrency] = 1 - step.seconds / without.seconds
    return found
