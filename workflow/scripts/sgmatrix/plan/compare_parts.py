"""`compare` of a campaign file as closed, typed models."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from sgmatrix.core.closed import Closed
from sgmatrix.plan.closed import AxisValue, Concurrency, Name, Rate

Metric = Literal[
    "tpot_ms_mean",
    "tpot_ms_p50",
    "tpot_ms_p99",
    "itl_ms_mean",
    "itl_ms_p50",
    "itl_ms_p99",
    "ttft_ms_mean",
    "ttft_ms_p50",
    "ttft_ms_p99",
    "e2e_ms_mean",
    "e2e_ms_p50",
    "e2e_ms_p99",
    "output_tok_s",
    "steady_output_tok_s",
    "total_tok_s",
    "request_s",
    "goodput_request_s",
    "energy_j_per_output_tok",
]
"""Columns of `points` that say which of two servers is better."""


class Primary(Closed):
    """The one load point at which a comparison is decided."""

    concurrency: Concurrency | None = Field(None, description="closed loop: requests in flight")
    request_rate: Rate | None = Field(None, description="open loop: requests per second")

    @model_validator(mode="after")
    def _one(self) -> Primary:
        if (self.concurrency is None) == (self.request_rate is None):
            raise ValueError("give exactly one of concurrency and request_rate")
        return self

    def is_at(self, concurrency: int | None, request_rate: float | None) -> bool:
        """Tell whether a load point is the one."""
        return (concurrency, request_rate) == (self.concurrency, self.request_rate)

    def text(self) -> str:
        if self.request_rate is not None:
            return f"request_rate {self.request_rate:g}"
        return f"concurrency {self.concurrency}"


class Budget(Closed):
    """Launches per arm: at least so many, at the most so many."""

    min: int = Field(3, ge=3, le=30, description="launches per arm that always run")
    max: int = Field(
        5, ge=3, le=30, description="launches per arm at the most; run only while undecided"
    )

    @model_validator(mode="after")
    def _in_order(self) -> Budget:
        if self.max < self.min:
            raise ValueError(f"max = {self.max} is below min = {self.min}")
        return self


class Compare(Closed):
    """Two cells of the matrix, and what decides whether the second one is better."""

    name: Name = Field(description="how tables and the report call it")
    baseline: dict[str, AxisValue] = Field(
        min_length=1,
        description="axis values of the cell that is compared with; with `one_at_a_time`, axes "
        "that are not named have their base values",
    )
    variant: dict[str, AxisValue] = Field(
        min_length=1, description="axis values of the cell that may be better"
    )
    metric: Metric = Field("tpot_ms_mean", description="column of `points` that decides")
    primary: Primary = Field(description="load point that decides")
    bound_percent: float = Field(
        1.0, gt=0, le=50, description="difference below which both are as good, in %"
    )
    launches: Budget = Budget()
    noise_pair: bool = Field(
        True, description="launch the baseline twice in each round, which tells the noise"
    )
