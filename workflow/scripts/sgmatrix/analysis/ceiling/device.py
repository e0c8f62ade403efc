"""Which device the ceilings of a campaign are computed for: facts files, driver, node probe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.facts.files import HardwareFile, hardware_file, hardware_for
from sgmatrix.core.facts.hardware import Device


def hardware_of(
    folder: Path, kind: str, hardware: str | None, gpu_names: Sequence[str]
) -> HardwareFile | None:
    """Return the facts of a node's GPUs; None on a CPU engine.

    Args:
        folder: of the hardware files.
        kind: `cuda` or `cpu`, of the engine.
        hardware: file that the campaign names; None: found by the driver's names.
        gpu_names: as the driver gives them; empty: not known here.

    Raises:
        SgmatrixError: `facts_missing`, with what is missing.
    """
    if kind == "cpu":
        return None
    if hardware is not None:
        return hardware_file(folder, hardware)
    names = sorted(set(gpu_names))
    found = hardware_for(folder, names[0]) if len(names) == 1 else None
    if found is None:
        seen = ", ".join(names) if names else "none was looked at"
        raise SgmatrixError(
            "facts_missing",
            f"no file of config/hardware for the GPUs of the node ({seen})",
            fix="name one in node.hardware, or write one",
        )
    return found


def device_of(file: HardwareFile | None, probe: Mapping[str, Any]) -> Device:
    """Return the device, with what was measured on this very node in the practical tier.

    Args:
        file: facts of the GPU; None: a CPU node.
        probe: `node-probe.json`; empty: the node was not probed.

    Raises:
        SgmatrixError: `facts_missing` for a CPU node that was not probed.
    """
    return _cpu(probe) if file is None else _as_measured(file.device(), probe)


def _as_measured(device: Device, probe: Mapping[str, Any]) -> Device:
    """Return a device with the copy rate and the all-reduces of its own node."""
    copied = probe.get("memory_copy_bytes_s")
    if isinstance(copied, int | float) and copied > 0:
        device = replace(device, practical_memory_bytes_s=min(float(copied), device.memory_bytes_s))
    rows = {
        int(n): points
        for n, table in (probe.get("allreduce_s") or {}).items()
        if (points := _timed(table))
    }
    if rows and device.link is not None:
        link = replace(device.link, allreduce_s=rows, measured_here=True)
        device = replace(device, link=link)
    return device


def _timed(table: object) -> tuple[tuple[float, float], ...]:
    """Return the points of a measured table, rising; what is no size and no time is left out."""
    pairs = [one for one in table if isinstance(one, list)] if isinstance(table, list) else []
    points = [
        (float(one[0]), float(one[1]))
        for one in pairs
        if len(one) == 2 and all(isinstance(x, int | float) and x > 0 for x in one)
    ]
    return tuple(sorted(points))


def _cpu(probe: Mapping[str, Any]) -> Device:
    """Return the memory of a CPU node as one rank sees it; its compute is not known.

    A small model lies in the caches: the hard tier takes the fastest rate of any buffer size.
    """
    copied = probe.get("memory_copy_bytes_s")
    if not isinstance(copied, int | float) or copied <= 0:
        raise SgmatrixError(
            "facts_missing",
            "the memory rate of this CPU node is not measured yet",
            fix="run the campaign: it probes the node before the first launch",
        )
    cached = probe.get("memory_cached_bytes_s")
    peak = max(float(copied), float(cached) if isinstance(cached, int | float) else 0.0)
    return Device(
        name="CPU node, memory alone",
        memory_bytes=None,
        memory_bytes_s=peak,
        practical_memory_bytes_s=float(copied),
        flops_s={},
        practical_compute=1.0,
        power_limit_w=None,
        link=None,
        kind="cpu",
    )
