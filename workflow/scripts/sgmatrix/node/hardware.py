"""What of a machine decides its speed, beyond `node.facts`: sockets, NUMA, governor, PCIe links."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.node import gpus, smi
from sgmatrix.node.facts import node_facts, processor

_SYSTEM = Path("/sys/devices/system")
_LINK_FIELDS = (
    "index",
    "pcie.link.gen.max",
    "pcie.link.width.max",
    "pcie.link.width.current",
    "clocks.max.memory",
)


def machine() -> dict[str, str | None]:
    """Return which machine this is, without asking a driver."""
    return {"hostname": platform.node(), "processor": processor()}


def hardware_facts(device: str, system: Path = _SYSTEM) -> dict[str, Any]:
    """Return `node_facts` with sockets, NUMA nodes, governor, and the PCIe link of each GPU.

    What cannot be read is None.
    """
    facts = node_facts(device)
    sockets = {_text(file) for file in system.glob("cpu/cpu*/topology/physical_package_id")}
    numa = [entry for entry in system.glob("node/node*") if re.fullmatch(r"node\d+", entry.name)]
    facts |= {
        "sockets": len(sockets) or None,
        "numa_nodes": len(numa) or None,
        "governor": _text(system / "cpu/cpu0/cpufreq/scaling_governor"),
    }
    if facts["gpus"]:
        links = _links()
        facts["gpus"] = [{**gpu, **links.get(gpu["index"], {})} for gpu in facts["gpus"]]
    return facts


def _links() -> dict[str, dict[str, str | None]]:
    try:
        rows, _lost = gpus.query_gpus(_LINK_FIELDS)
    except SgmatrixError:
        return {}
    return {row["index"]: {key: smi.known(text) for key, text in row.items()} for row in rows}


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None
