"""The base of every model of a file that people write: closed, strict, frozen."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Closed(BaseModel):
    """A model that refuses unknown keys and numbers in disguise (text, booleans)."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
