"""What a device and its links can do, as facts: bytes, bytes/s, FLOP/s, s, W."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sgmatrix.core.facts.formats import Unit


@dataclass(frozen=True)
class Link:
    """How the devices of one node reach each other."""

    name: str
    peak_bytes_s: float
    """One direction, per device."""
    practical_bytes_s: float
    """What large transfers reach."""
    latency_s: Mapping[int, float] = field(default_factory=dict)
    """Floor of one small collective, by the number of devices."""
    in_network_reduce: bool = False
    """The switch adds up: each device sends its message once (NVSwitch SHARP)."""
    allreduce_s: Mapping[int, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    """Measured all-reduces: devices to (message bytes, s), rising."""
    measured_here: bool = False
    """They were measured on the node that serves, not on another of its kind."""


@dataclass(frozen=True)
class Device:
    """One GPU, or the memory of a CPU node as one rank sees it."""

    name: str
    memory_bytes: float | None
    """None: not known, as that of a CPU node."""
    memory_bytes_s: float
    """Peak."""
    practical_memory_bytes_s: float
    flops_s: Mapping[Unit, float]
    """Dense peak by unit; empty: not known, then compute bounds nothing."""
    practical_compute: float
    """Share of the peak that large matrix products reach."""
    power_limit_w: float | None
    link: Link | None
    """None: one device, or ranks that share a memory."""
    kind: Literal["cuda", "cpu"] = "cuda"
    """Of the engines that run on it."""
