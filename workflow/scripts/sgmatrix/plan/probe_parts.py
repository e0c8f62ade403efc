"""`probe` of a campaign file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from sgmatrix.core.closed import Closed
from sgmatrix.plan.closed import Concurrency, sorted_once


class Probe(Closed):
    """An untimed launch per cell of the axis `oea`: experts counted, quality measured."""

    experts: Literal["auto", "off"] = Field(
        "auto", description="auto: cells of the axis `oea` are probed"
    )
    batches: list[Concurrency] = Field(
        [],
        description="requests decoded together; default: `load.concurrency` up to max_batch and to "
        "the server's max_running_requests",
    )
    max_batch: int = Field(256, ge=1, le=4096, description="above it nothing is counted")
    steps: int = Field(32, ge=4, le=4096, description="output tokens of each request")
    prompts: int = Field(8, ge=0, le=256, description="texts whose likelihood is measured; 0: none")
    tokens: int = Field(24, ge=2, le=4096, description="tokens of each such text")

    @field_validator("batches")
    @classmethod
    def _once(cls, batches: list[int]) -> list[int]:
        return sorted_once(batches, "batch size")
