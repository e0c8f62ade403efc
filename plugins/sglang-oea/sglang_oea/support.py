"""What the plug-in supports, without starting anything: no torch, no SGLang is imported.

`python -m sglang_oea.support` prints it as JSON, so that a planner can refuse a cell before
any launch; `obstacles` says the same of server arguments.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from sglang_oea import __version__

# Version of SGLang -> how the running forward mode is found there (modes.py).
SUPPORTED = {
    "0.5.15.post1": "hooks",
    "0.5.16": "hooks",
    "0.5.17": "hooks",
    "0.5.23": "context",
}

ROUTE_INSIDE = ("flashinfer_trtllm", "flashinfer_mxfp4", "triton_kernel", "triton_kernels")
"""MoE runner back ends that route inside their kernel: the hook is never reached there."""

READ = (
    "moe_runner_backend",
    "moe_a2a_backend",
    "enable_torch_compile",
    "enable_dp_attention",
    "enable_two_batch_overlap",
    "speculative_algorithm",
)
"""Names of ServerArgs that `obstacles` reads."""

_REACHED = "triton, cutlass, flashinfer_cutlass, flashinfer_trtllm_routed"


def plugin_sha256() -> str:
    """Return the hash over the package's sources: what code is switched on by OEA_ENABLE."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        text = file.read_bytes()
        digest.update(f"{file.name}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


def sglang_version() -> str | None:
    """Return the version of the SGLang that this interpreter would import; None without one."""
    try:
        return metadata.version("sglang")
    except metadata.PackageNotFoundError:
        return None


def version_obstacle(version: str | None) -> str | None:
    """Return why a version of SGLang is not supported; None where it is."""
    if version is None:
        return "SGLang is not installed beside the plug-in"
    if version not in SUPPORTED:
        return f"SGLang {version} is not supported; supported: {', '.join(SUPPORTED)}"
    return None


def obstacles(args: Mapping[str, Any]) -> list[str]:
    """Return, in words, why a server with these arguments cannot run with OEA on.

    Args:
        args: names and values as in SGLang's `ServerArgs`; a name that is missing has its
            default. Only those in READ are read.
    """
    runner = str(args.get("moe_runner_backend") or "auto")
    a2a = str(args.get("moe_a2a_backend") or "none")
    found = []
    if runner in ROUTE_INSIDE:
        found.append(
            f"moe_runner_backend = {runner} routes inside its kernel, where OEA cannot reach; "
            f"allowed: {_REACHED}"
        )
    if a2a != "none":
        found.append(
            f"moe_a2a_backend = {a2a}: a rank sees only its own tokens, so the experts of the "
            "batch cannot be shared; allowed: none"
        )
    if args.get("enable_torch_compile"):
        found.append("enable_torch_compile: compiled decode steps do not run the plug-in")
    if args.get("enable_dp_attention"):
        found.append("enable_dp_attention: its padding rows would open experts")
    if args.get("enable_two_batch_overlap"):
        found.append("enable_two_batch_overlap: each half of a batch would share by itself")
    if args.get("speculative_algorithm"):
        found.append(
            f"speculative_algorithm = {args['speculative_algorithm']}: its steps are no decode "
            "steps, only the draft would be changed"
        )
    return found


def report() -> dict[str, object]:
    """Return {plugin_version, plugin_sha256, sglang_version, supported, why}."""
    version = sglang_version()
    why = version_obstacle(version)
    return {
        "plugin_version": __version__,
        "plugin_sha256": plugin_sha256(),
        "sglang_version": version,
        "supported": why is None,
        "why": why,
    }


if __name__ == "__main__":
    json.dump(report(), sys.stdout)
    sys.stdout.write("\n")
