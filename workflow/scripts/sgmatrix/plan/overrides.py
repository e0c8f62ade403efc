"""What is other for some cells: launches, load points, deadlines, server flags, environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan.axes import Point
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.closed import AxisValue
from sgmatrix.plan.load_parts import Load, LoadOverride
from sgmatrix.plan.matrix import meets
from sgmatrix.plan.parts import Deadlines, Override


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
    return [override for override in campaign.overrides if meets(campaign, point, override.where)]


def settings_of(campaign: Campaign, point: Point) -> Settings:
    """Return the settings of the cell of one point of the matrix."""
    launches, load, deadlines = campaign.launches, campaign.load, campaign.deadlines
    flags: dict[str, AxisValue] = {}
    env: dict[str, str] = {}
    for override in matching(campaign, point):
        launches = override.launches or launches
        if override.load is not None:
            load = _overridden(load, override.load)
        if override.deadlines is not None:
            deadlines = deadlines.model_copy(update=_given(override.deadlines))
        flags |= override.flags
        env |= override.env
    return Settings(launches, load, deadlines, flags, env)


def _overridden(load: Load, override: LoadOverride) -> Load:
    """Return a load with some keys replaced, held to the rules of any load.

    Raises:
        SgmatrixError: `config_rejected` when together they are none.
    """
    try:
        return Load.model_validate({**dict(load), **_given(override)})
    except ValidationError as error:
        whys = "; ".join(one["msg"].removeprefix("Value error, ") for one in error.errors())
        raise SgmatrixError("config_rejected", f"overrides.load: {whys}") from None


def _given(part: BaseModel) -> dict[str, Any]:
    """Return the keys of a part that are given."""
    values = {name: getattr(part, name) for name in type(part).model_fields}
    return {name: value for name, value in values.items() if value is not None}
