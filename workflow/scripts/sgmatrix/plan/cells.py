"""From a point of the matrix to a cell: readable id, key, flags, command line."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan.bundles import parallelism_flags, ranks_of
from sgmatrix.plan.campaign import AxisValue, Campaign
from sgmatrix.plan.engines import Installation
from sgmatrix.plan.matrix import Point
from sgmatrix.plan.model import ModelFacts

# Axis -> (short form in the id, server flag). Any other axis is the flag of its own name.
_KNOWN = {
    "engine": ("", None),
    "parallelism": ("", None),
    "decode_steps": ("ds", "num_continuous_decode_steps"),
    "mem_fraction": ("mf", "mem_fraction_static"),
}
_ID_LIMIT = 100

# SGLang's other spellings of the flags that say how many GPUs a cell takes.
_ALIASES = {
    "tp": "tp_size",
    "pp": "pp_size",
    "dp": "dp_size",
    "ep": "ep_size",
    "tensor_parallel_size": "tp_size",
    "pipeline_parallel_size": "pp_size",
    "data_parallel_size": "dp_size",
    "expert_parallel_size": "ep_size",
}

# Flags that the launcher sets itself.
_OURS = {"host", "port", "served_model_name", "model_path", "model"}


def digest(data: Any) -> str:
    """Return the sha256 of a value's canonical JSON."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def value_text(value: AxisValue) -> str | None:
    """Return an axis value as text for ids, columns and parameters; None where not set."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "on" if value else "off"
    return json.dumps(value, sort_keys=True)


def cell_id(point: Mapping[str, AxisValue]) -> str:
    """Return the readable, path-safe id of a point, such as `tp8-ds8-mf0.90`.

    It depends on the values alone, not on the order of the file.
    """
    order = {name: i for i, name in enumerate(_KNOWN)}
    parts = []
    for axis in sorted(point, key=lambda name: (order.get(name, len(order)), name)):
        value = point[axis]
        text = value_text(value)
        if text is None:
            continue
        if axis == "mem_fraction" and isinstance(value, int | float) and round(value, 2) == value:
            text = f"{value:.2f}"
        short = _KNOWN[axis][0] if axis in _KNOWN else axis.replace("_", "-") + "-"
        parts.append(short + re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-."))
    name = "-".join(part for part in parts if part) or "base"
    if len(name) > _ID_LIMIT:
        name = f"{name[: _ID_LIMIT - 9]}-{digest(dict(point))[:8]}"
    return name


def _flag(name: str) -> str:
    """Return the one name of a server flag, whichever spelling of it was used."""
    name = name.replace("-", "_")
    return _ALIASES.get(name, name)


def server_flags(point: Point, engine_flags: Mapping[str, AxisValue]) -> dict[str, AxisValue]:
    """Return the server flags of a cell: the engine's defaults, overridden by the axes.

    Raises:
        SgmatrixError: `config_rejected` for a flag that the launcher sets, or an impossible value.
    """
    flags: dict[str, AxisValue] = {_flag(name): value for name, value in engine_flags.items()}
    flags |= _axis_values(point)
    for flag in _SIZES & flags.keys():
        size = flags[flag]
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise SgmatrixError(
                "config_rejected", f"{flag} = {size!r}", fix="write a whole number of 1 or more"
            )
    if taken := sorted(flags.keys() & _OURS):
        raise SgmatrixError(
            "config_rejected", f"{taken[0]} is set by the workflow itself", fix="take it out"
        )
    fraction = flags.get("mem_fraction_static")
    if fraction is not None and not (
        isinstance(fraction, int | float) and not isinstance(fraction, bool) and 0 < fraction < 1
    ):
        near = (
            f"; write {fraction / 100:g}"
            if isinstance(fraction, int) and 1 < fraction < 100
            else ""
        )
        raise SgmatrixError(
            "config_rejected",
            f"mem_fraction = {fraction!r}, allowed 0 < value < 1",
            fix=f"it is a share of the memory, not a percentage{near}",
        )
    return flags


def _axis_values(point: Point) -> dict[str, AxisValue]:
    """Return the server flags that the axes of a point set; two axes may not set the same one."""
    flags: dict[str, AxisValue] = {}
    setter: dict[str, str] = {}
    for axis, value in point.items():
        mine: dict[str, AxisValue] = {}
        if axis == "parallelism":
            mine |= parallelism_flags(str(value))
        elif axis != "engine" and value is not None:
            mine[axis_flags(axis, [value])[0]] = value
        for flag in mine:
            if flag in setter:
                raise SgmatrixError(
                    "config_rejected",
                    f"axes {setter[flag]} and {axis} both set the server flag {flag}",
                    fix="keep one of them",
                )
            setter[flag] = axis
        flags |= mine
    return flags


def axis_flags(axis: str, values: Sequence[AxisValue]) -> list[str]:
    """Return the server flags that an axis sets, in Python's spelling."""
    if axis == "engine":
        return []
    if axis == "parallelism":
        return sorted({flag for value in values for flag in parallelism_flags(str(value))})
    return [(_KNOWN[axis][1] if axis in _KNOWN else None) or _flag(axis)]


def flag_arguments(flags: Mapping[str, AxisValue]) -> list[str]:
    """Return the flags as an argument list; true is a bare flag, false and None are left out."""
    arguments: list[str] = []
    for name in sorted(flags):
        value = flags[name]
        if value is None or value is False:
            continue
        arguments.append("--" + name.replace("_", "-"))
        if value is not True:
            arguments.append(str(value_text(value)))
    return arguments


@dataclass(frozen=True)
class Cell:
    """One server configuration."""

    id: str
    key: str
    axes: Mapping[str, AxisValue]
    ranks: int
    """Worker processes of the server: one per GPU, or per core on the CPU engine."""
    gpus: int
    engine: str
    engine_version: str
    device: str
    python: str
    env: Mapping[str, str]
    flags: Mapping[str, AxisValue]
    arguments: tuple[str, ...]
    """Behind `python`, without host, port and served name, which differ per launch."""
    min_free_memory_mb: int
    expected_start_s: float


def make_cell(point: Point, campaign: Campaign, engine: Installation, model: ModelFacts) -> Cell:
    """Return the cell of one point of the matrix."""
    declared = campaign.engines[engine.name]
    flags = server_flags(point, declared.flags)
    parallel = {n: v for n, v in flags.items() if isinstance(v, int) and n in _PARALLEL}
    ranks = ranks_of(parallel)
    arguments = (
        "-m",
        "sglang.launch_server",
        "--model-path",
        model.path,
        *flag_arguments(flags),
    )
    key = digest(
        {
            # the model's folder may move; its digest stands for it
            "arguments": [a for a in arguments if a != model.path],
            "env": campaign.engines[engine.name].env,
            "engine": [engine.version, engine.lock],
            "model": model.digest,
        }
    )
    return Cell(
        id=cell_id(point),
        key=key,
        axes=dict(point),
        ranks=ranks,
        gpus=ranks if declared.device == "cuda" else 0,
        engine=engine.name,
        engine_version=engine.version,
        device=declared.device,
        python=engine.python,
        env=dict(engine.env),
        flags=flags,
        arguments=arguments,
        min_free_memory_mb=declared.min_free_memory_mb,
        expected_start_s=declared.expected_start_s,
    )


_SIZES = {"tp_size", "pp_size", "dp_size", "ep_size"}
_SIZES = {"tp_size", "pp_size", "dp_size", "ep_size"}
_PARALLEL = ("tp_size", "pp_size", "dp_size", "ep_size", "enable_dp_attention")
