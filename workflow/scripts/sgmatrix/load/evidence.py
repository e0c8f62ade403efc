"""All that is known of one measured load point beside its requests; what the verdicts lean on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sgmatrix.load.client_use import ClientUse
from sgmatrix.load.serverview import ServerView


@dataclass(frozen=True)
class Surroundings:
    """What telemetry saw during the measured window; None and absent: it did not see it."""

    coverage: Mapping[str, float] = field(default_factory=dict)
    """Source that was expected, such as `gpu 0`, to the share of its samples that are there."""
    errors: Sequence[str] = ()
    """What the sampler itself could not measure in this launch, and why."""
    foreign_share: float | None = None
    """Of the machine's CPUs, used by what is neither engine nor harness."""
    foreign_pids: Sequence[int] = ()
    """Processes on the cell's GPUs that are not the server's."""
    throttled: Mapping[str, float] = field(default_factory=dict)
    """Reason for lower clocks to the share of samples that had it."""
    power_w_mean: float | None = None
    """All GPUs of the cell."""
    power_idle_w: float | None = None
    """Before the server took their memory."""
    energy_j: float | None = None


@dataclass(frozen=True)
class Evidence:
    """One measured load point."""

    point: Mapping[str, Any]
    """What was offered, from the plan."""
    rows: Sequence[Mapping[str, Any]]
    """Its requests; at least one is ok."""
    metrics: Mapping[str, Any]
    server: ServerView
    pool: Mapping[str, Any]
    """What the server reports of itself: max_total_num_tokens, max_running_requests."""
    vocab_size: int | None
    """First ids that a `random-ids` prompt may have; None where it is not known."""
    client: ClientUse | None
    surroundings: Surroundings
    stream_errors: Sequence[str]
    """Errors that the server logged about answers that it had begun with HTTP 200."""
    cache_flushed: bool
    cold: str | None
    """Why the server was not warm; None where it was."""
