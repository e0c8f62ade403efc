"""What the models of a campaign file are built from: values, names, numbers."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import Field

_Number = TypeVar("_Number", int, float)
AxisValue = bool | int | float | str | dict[str, Any] | list[bool | int | float | str] | None
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$")]
"""A name that axis values are put together from, as in `p2p-off+small-buffers`."""
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Concurrency = Annotated[int, Field(ge=1, le=65536)]
Rate = Annotated[float, Field(ge=0.001, le=1e6)]
"""Requests per second."""
Seconds = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]
"""A part of a whole, not a percentage."""


def sorted_once(values: list[_Number], what: str) -> list[_Number]:
    """Return load points from the lowest up; refuse one that stands twice."""
    if len({f"{value:.10g}" for value in values}) < len(values):
        raise ValueError(f"a {what} stands twice")
    return sorted(values)
