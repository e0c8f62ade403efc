"""Pairs of cells that a campaign compares, and which of their launches belong together.

The launch is the unit of repetition. Round r holds one launch of each arm, and one more of the
baseline: baseline against baseline tells the noise. Rounds run in turn forwards and backwards
(ABBA), so that a drift of the machine falls on both arms alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sgmatrix.core.errors import Refusal
from sgmatrix.core.hashing import digest
from sgmatrix.core.layout import NOISE
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.cells import Cell
from sgmatrix.plan.compare_parts import Compare
from sgmatrix.plan.load_parts import Load
from sgmatrix.plan.loads import load_ids
from sgmatrix.plan.matrix import meets, show


@dataclass(frozen=True)
class Comparison:
    """Two cells, and how it is decided whether the second one is better."""

    name: str
    baseline: str
    """Cell id."""
    variant: str
    metric: str
    """Column of `points`."""
    primary: str
    """Load id at which it is decided; the others are corrected for their number."""
    loads: tuple[str, ...]
    """Load ids that both cells have, the primary one among them, from the lowest up."""
    bound_percent: float
    least: int
    """Rounds that run whatever they say."""
    most: int
    """Rounds that are planned; those above `least` run only while it is undecided."""
    noise_pair: bool
    rounds: tuple[Mapping[str, str], ...]
    """Launch by arm (`baseline`, `variant`, `noise`), for each planned round."""

    def record(self) -> dict[str, Any]:
        return asdict(self)


def noise_launch(number: int) -> str:
    """Return the second launch of a baseline in a round, counted from 1."""
    return f"{number}{NOISE}"


def comparisons(
    campaign: Campaign,
    cells: Mapping[str, Cell],
    loads: Mapping[str, Load],
) -> tuple[Comparison, ...]:
    """Return the comparisons of a campaign.

    Args:
        campaign: the campaign.
        cells: by id.
        loads: cell id to what is offered to it.

    Raises:
        Refusal: `config_rejected`, naming each `compare` that does not stand for one pair.
    """
    problems: list[str] = []
    found: list[Comparison] = []
    for i, (one, baseline, variant) in enumerate(_arms(campaign, cells)):
        place = f"compare[{i}] {one.name}"
        if baseline is None or variant is None:
            problems += _why_not_one(campaign, cells, one, place)
            continue
        theirs = load_ids(loads[variant])
        shared = {name: at for name, at in load_ids(loads[baseline]).items() if name in theirs}
        # of several lengths, the load's own come first
        primary = [name for name, at in shared.items() if one.primary.is_at(*at)]
        unfit = _unfit(one, cells[baseline], loads[baseline], loads[variant])
        if baseline == variant:
            problems.append(f"{place}: baseline and variant are the same cell, {baseline}")
        elif unfit:
            problems.append(f"{place}: {unfit}")
        elif not primary:
            have = ", ".join(shared) or "none"
            problems.append(
                f"{place}.primary: {one.primary.text()} is no load point of both cells; they "
                f"share {have}"
            )
        else:
            found.append(
                Comparison(
                    name=one.name,
                    baseline=baseline,
                    variant=variant,
                    metric=one.metric,
                    primary=primary[0],
                    loads=tuple(shared),
                    bound_percent=one.bound_percent,
                    least=one.launches.min,
                    most=one.launches.max,
                    noise_pair=one.noise_pair,
                    rounds=tuple(_round(number, one) for number in range(1, one.launches.max + 1)),
                )
            )
    if problems:
        raise Refusal("config_rejected", problems)
    return tuple(found)


def _unfit(one: Compare, cell: Cell, load: Load, other: Load) -> str | None:
    """Return why two cells cannot be compared by a metric; None where they can."""
    if _kind(load) != _kind(other):
        return "an override gives one of the cells another load, so that its requests differ"
    if one.metric.startswith("goodput") and not (load.slo and other.slo):
        return f"metric {one.metric} needs an objective: load.slo"
    if one.metric.startswith("energy") and cell.device == "cpu":
        return f"metric {one.metric} is not measured on the CPU engine"
    if one.metric.startswith(("tpot", "itl")) and load.output_len == 1:
        return f"metric {one.metric} does not exist where load.output_len is 1"
    return None


def _kind(load: Load) -> dict[str, Any]:
    return load.model_dump(exclude={"concurrency", "request_rate"})


def rule_digest(comparison: Comparison) -> str:
    """Return a hash over all that decides when a comparison may stop, but for the values."""
    return digest(comparison.record())


def _round(number: int, one: Compare) -> dict[str, str]:
    arms = {"baseline": str(number), "variant": str(number)}
    return arms | ({"noise": noise_launch(number)} if one.noise_pair else {})


def _arms(
    campaign: Campaign, cells: Mapping[str, Cell]
) -> list[tuple[Compare, str | None, str | None]]:
    """Return the two cells of each comparison; None where the condition is not about one."""
    return [
        (one, _only(campaign, cells, one.baseline), _only(campaign, cells, one.variant))
        for one in campaign.compare
    ]


def _only(campaign: Campaign, cells: Mapping[str, Cell], where: Mapping[str, Any]) -> str | None:
    met = _met(campaign, cells, where)
    return met[0] if len(met) == 1 else None


def _met(campaign: Campaign, cells: Mapping[str, Cell], where: Mapping[str, Any]) -> list[str]:
    """Return the cells that a condition is about.

    Where one axis at a time is changed, an axis that it does not name has its base value.
    """
    met = [cell for cell in cells.values() if meets(campaign, dict(cell.axes), where)]
    if campaign.design == "one_at_a_time" and len(met) > 1:
        base = next(iter(cells.values())).axes
        plain = [
            cell
            for cell in met
            if all(
                value == base.get(axis) for axis, value in cell.axes.items() if axis not in where
            )
        ]
        met = plain if len(plain) == 1 else met
    return [cell.id for cell in met]


def _why_not_one(
    campaign: Campaign, cells: Mapping[str, Cell], one: Compare, place: str
) -> list[str]:
    problems = []
    for arm, where in (("baseline", one.baseline), ("variant", one.variant)):
        met = _met(campaign, cells, where)
        if not met:
            problems.append(f"{place}.{arm}: no cell has {show(where)}")
        elif len(met) > 1:
            problems.append(
                f"{place}.{arm}: {len(met)} cells have {show(where)} ({', '.join(met[:4])}); fix: "
                "name more axes, so that it is one"
            )
    return problems
