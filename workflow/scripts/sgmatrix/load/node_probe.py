"""The probe of a node: memory and links as the engine's own Python finds them, and the machine.

Its record, `node-probe.json`:

    version, key, attempt, asked   what it was made for (`plan.node_probe`)
    status                         ok, or failed: something that is there could not be measured
    started_at, duration_s         when, and what it cost
    engine, engine_version, torch  whose Python measured; null: it has no torch
    node, devices, environment     what machine, which of its devices, NCCL's switches
    measured
      memory_copy_bytes_s          read and written by a copy that no cache holds: one thread of a
                                   CPU; the median of the GPUs
      memory_cached_bytes_s        CPU: the best round of any buffer size, caches included
      memory_copies                of each device [[bytes, median bytes/s, best bytes/s], ...]
      allreduce_s                  {"2": [[message bytes, s], ...], "4": ..., "8": ...}, bf16
    skipped                        name in `measured` -> why it is not there

What cannot be measured is said and stops nothing. A node that is not free is a disturbance, as
for a launch: nothing is filed.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sgmatrix.core.clock import Stopwatch, now_utc
from sgmatrix.core.engine_python import ask_python
from sgmatrix.core.events import emit
from sgmatrix.core.files import read_json
from sgmatrix.core.layout import NODE_PROBE, Layout
from sgmatrix.node import proc
from sgmatrix.node.hardware import hardware_facts
from sgmatrix.node.leased import end_with_owner, leased_devices
from sgmatrix.plan.node_probe import VERSION

_MIB = 2**20
_CPU_BUFFERS = tuple(size * _MIB for size in (1, 4, 16, 64, 256))
_GPU_BUFFERS = (2048 * _MIB,)
_MESSAGES = tuple(4**power * 1024 for power in range(1, 10))
"""4 KiB to 256 MiB."""
_COPIES_S, _ALLREDUCE_S = 120.0, 60.0
_ENDS_S = 15.0
"""What the all-reduces may take to end beyond their own limit."""
_NO_MULTICAST = {
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NVSHMEM_DISABLE_NVLS": "1",
}
"""NVLink multicast can put the GPUs of a shared host out of service: off unless the engine's
environment says otherwise."""


def probe_node(layout: Layout) -> dict[str, Any]:
    """Measure the node; return the record.

    Raises:
        SgmatrixError: when the node is not free, or the campaign is being stopped.
    """
    plan = read_json(layout.plan)
    asked = plan["node_probe"]
    end_with_owner()
    about = {"cell": NODE_PROBE, "launch": NODE_PROBE}
    with leased_devices(
        asked["gpus"],
        node=plan["settings"]["node"],
        stop_s=max(cell["deadlines"]["stop_s"] for cell in plan["cells"].values()),
        note={"campaign": plan["campaign"], "cell": NODE_PROBE},
        waiting=lambda holders: emit(layout.events, "waiting", **about, holders=holders),
    ) as devices:
        emit(layout.events, "node_probe", **about)
        started_at, watch = now_utc(), Stopwatch()
        found = measure(asked, devices)
        took_s = watch.elapsed_s()
    record = {
        "version": VERSION,
        **{name: asked[name] for name in ("key", "attempt", "engine", "engine_version")},
        "asked": {name: asked[name] for name in _MADE_FOR},
        "started_at": started_at,
        "duration_s": round(took_s, 3),
        "node": hardware_facts(asked["device"]),
        "devices": devices,
        **found,
    }
    emit(layout.events, "node_probe_done", **about, lines=told(record))
    return record


_MADE_FOR = ("engine_key", "device", "groups", "node")


def measure(asked: Mapping[str, Any], devices: Sequence[str]) -> dict[str, Any]:
    """Return `torch`, `measured`, `skipped`, `status` and `environment` of the record."""
    gpus = [name.removeprefix("gpu-") for name in devices if name.startswith("gpu-")]
    place = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(gpus)}
    off = {name: text for name, text in _NO_MULTICAST.items() if name not in asked["env"]}
    extra = place | (off if gpus else {})
    measured: dict[str, Any] = {}
    skipped: dict[str, str] = {}
    torch, why = None, None
    try:
        sizes = _CPU_BUFFERS if asked["device"] == "cpu" else _GPU_BUFFERS
        said = _ask(asked, "bandwidth.py", [asked["device"], *sizes], extra, _COPIES_S)
        torch = said["torch"]
        measured |= copy_values(said["copies"], asked["device"])
    except (OSError, LookupError, TypeError, statistics.StatisticsError) as error:
        why = skipped["memory_copy_bytes_s"] = _root(error)
    groups = [count for count in asked["groups"] if count <= len(gpus)]
    if asked["device"] == "cpu":
        skipped["allreduce_s"] = "no GPU"
    elif not groups:
        skipped["allreduce_s"] = "one GPU"
    elif why is not None:
        skipped["allreduce_s"] = why
    else:
        tables, why = _allreduces(asked, groups, extra)
        measured |= {"allreduce_s": tables} if tables else {}
        if why is not None:
            skipped["allreduce_s"] = why
    return {
        "status": "ok" if why is None else "failed",
        "torch": torch,
        "measured": measured,
        "skipped": skipped,
        "environment": {
            name: text
            for name, text in sorted({**extra, **asked["env"]}.items())
            if name.startswith("NCCL_") or name in _NO_MULTICAST
        },
    }


def copy_values(copies: Sequence[Sequence[Sequence[float]]], device: str) -> dict[str, Any]:
    """Return what a record says of the copies: of each device `[[bytes, median, best], ...]`."""
    values: dict[str, Any] = {
        "memory_copy_bytes_s": statistics.median(rates[-1][1] for rates in copies),
        "memory_copies": copies,
    }
    if device == "cpu":
        values["memory_cached_bytes_s"] = max(best for rates in copies for _, _, best in rates)
    return values


def _allreduces(
    asked: Mapping[str, Any], groups: Sequence[int], extra: Mapping[str, str]
) -> tuple[dict[str, Any], str | None]:
    arguments = ["nccl", ",".join(map(str, groups)), ",".join(map(str, _MESSAGES)), _ALLREDUCE_S]
    try:
        said = _ask(asked, "allreduce.py", arguments, extra, _ALLREDUCE_S + _ENDS_S)
        return said["allreduce_s"], said["error"]
    except (OSError, LookupError, TypeError) as error:
        return {}, _root(error)


def _ask(
    asked: Mapping[str, Any],
    name: str,
    arguments: Sequence[object],
    extra: Mapping[str, str],
    limit_s: float,
) -> Any:
    script = Path(__file__).with_name("probe") / name
    return ask_python(
        asked["python"],
        [script, *arguments],
        asked["env"],
        extra=extra,
        limit_s=limit_s,
        first=proc.die_with_parent,
    )


def _root(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else repr(error)


def told(record: Mapping[str, Any]) -> list[str]:
    """Return what a record says, in lines for people: the log, the terminal, the report."""
    measured = record["measured"]
    lines = []
    if (copied := measured.get("memory_copy_bytes_s")) is not None:
        cached = measured.get("memory_cached_bytes_s")
        caches = "" if cached is None else f", {cached / 1e9:.1f} GB/s in the caches"
        lines.append(f"memory copies at {copied / 1e9:.1f} GB/s{caches}")
    for count, table in (measured.get("allreduce_s") or {}).items():
        (_, least), (size, most) = table[0], table[-1]
        bus = 2 * (int(count) - 1) / int(count) * size / most
        lines.append(
            f"all-reduce of {count} GPUs from {least * 1e6:.1f} us, {bus / 1e9:.1f} GB/s on the bus"
        )
    lines += [f"{name} not measured: {why}" for name, why in record["skipped"].items()]
    return [*lines, f"took {record['duration_s']:.1f} s"]
