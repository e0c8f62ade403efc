"""What is other for some cells: launches, load points, deadlines, server flags, environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan.axes import Point
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.matrix import meets, show
from sgmatrix.plan.parts import AxisValue, Deadlines, Load, Override


@dataclass(frozen=True)
class Settings:
    """How one cell is launched and loaded: the campaign's settings with its overrides."""

    launches: int
    load: Load
    deadlines: Deadlines
    flags: Mapping[str, AxisValue]
    """Server flags that an override sets, over those of the engine."""
    env: Mapping[str, str]


def matching(campaign: Campaign, point: Point) -> list[Override]:
    """Return the overrides whose condition the point meets, in the order of the file."""
    return [override for override in campaign.overrides if meets(point, override.where)]


def settings_of(campaign: Campaign, point: Point) -> Settings:
    """Return the settings of the cell of one point of the matrix."""
    launches, load, deadlines = campaign.launches, campaign.load, campaign.deadlines
    flags: dict[str, AxisValue] = {}
    env: dict[str, str] = {}
    for override in matching(campaign, point):
        launches = override.launches or launches
        if override.load is not None:
            given = {
                name: value
                for name in type(override.load).model_fields
                if (value := getattr(override.load, name)) is not None
            }
            load = load.model_copy(update=given)
        deadlines = deadlines.model_copy(
            update={str(name): limit_s for name, limit_s in override.deadlines.items()}
        )
        flags |= override.flags
        env |= override.env
    return Settings(launches, load, deadlines, flags, env)


def check_overrides(campaign: Campaign, points: list[Point]) -> None:
    """Refuse a condition that meets no cell: a misspelled one would change nothing, silently.

    Raises:
        SgmatrixError: `config_rejected`.
    """
    for i, override in enumerate(campaign.overrides):
        if not any(meets(point, override.where) for point in points):
            raise SgmatrixError(
                "config_rejected",
                f"overrides[{i}].where: no cell has {show(override.where)}",
                fix="correct the values, or remove the override",
            )
