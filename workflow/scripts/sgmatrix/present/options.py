"""What `--config` may say; a campaign itself is a file."""

from __future__ import annotations

import os
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from sgmatrix.plan.profiles import AskedProfile
from sgmatrix.present.tracking.target import find_target


class Options(BaseModel):
    """Keys and values of `--config`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    retry: Literal["failed"] | None = None
    strict: bool = False
    """Stop when a repeated cell would not be measured with what it was measured with then."""
    time_limit_s: float | None = Field(None, gt=0)
    """Seconds for which the machine is there: no launch begins that would not end in them."""
    home: bool = False
    """Measure nothing: tell of copied records, also where the engine and the GPUs are there."""
    cell: str | None = None
    """What the target `profile` is to profile; nothing else uses it, or what follows."""
    concurrency: int | None = Field(None, ge=1)
    """Requests at once; None: the most of the cell's load."""
    steps: int = Field(10, ge=1, le=1000)
    """Decode steps to look at."""

    base: str | None = Field(None, coerce_numbers_to_str=True)
    """Campaign, or the folder of its results, that the target `compare` sets others beside."""
    other: str | None = Field(None, coerce_numbers_to_str=True)
    """The campaign, or folder, that is compared with it."""
    bound_percent: float = Field(1.0, gt=0, le=50)
    """Difference below which both campaigns are as good, in %; only `compare` uses it."""

    tracking_uri: str | None = None
    """An MLflow server or a database instead of results/mlflow.db."""

    def tracking_target(self) -> str:
        """Return where runs are tracked to, without user name and password.

        Raises:
            SgmatrixError: `config_rejected`.
        """
        return find_target(self.tracking_uri, os.environ).public

    def profile(self) -> AskedProfile | None:
        if self.cell is None:
            return None
        return AskedProfile(self.cell, self.concurrency, self.steps)
