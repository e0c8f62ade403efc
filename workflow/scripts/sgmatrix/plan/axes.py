"""What an axis value means: server flags, environment variables or patches, and its texts.

An axis is one of the names below, the name of an environment variable in capitals, or else the
server flag of its own name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan.bundles import parallelism_flags
from sgmatrix.plan.closed import AxisValue
from sgmatrix.plan.oea import oea_environment, oea_text

Point = dict[str, AxisValue]
"""One point of the matrix: axis name to value; None means that it is not given."""

ID_ORDER = ("engine", "parallelism", "decode_steps", "mem_fraction", "oea")
"""Axes that come first in a cell's id; the others follow by name."""

# Axis -> (short form in the id, server flag where it is one).
_KNOWN: dict[str, tuple[str, str | None]] = {
    "engine": ("", None),
    "parallelism": ("", None),
    "decode_steps": ("ds", "num_continuous_decode_steps"),
    "mem_fraction": ("mf", "mem_fraction_static"),
    "oea": ("oea", None),
    "environment": ("", None),
    "patches": ("", None),
}

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


@dataclass
class Given:
    """What the axes of one point set."""

    flags: dict[str, AxisValue] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    unset: set[str] = field(default_factory=set)
    """Variables that the server is not to have, wherever they come from."""
    patches: list[str] = field(default_factory=list)


def is_variable(axis: str) -> bool:
    """Tell whether an axis is an environment variable."""
    return axis[:1].isupper()


def flag_name(name: str) -> str:
    """Return the one name of a server flag, whichever spelling of it was used."""
    name = name.replace("-", "_")
    return _ALIASES.get(name, name)


def canonical(axis: str, value: AxisValue) -> AxisValue:
    """Return the one spelling of a value: 0.90 and 0.9 are the same, 8.0 is 8, OEA false is off."""
    if axis == "oea" and value in (None, False, "off"):
        return "off"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    if is_variable(axis) and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


def value_text(axis: str, value: AxisValue) -> str | None:
    """Return an axis value as text for columns and parameters; None where not given."""
    if axis == "oea":
        return oea_text(value)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "on" if value else "off"
    return json.dumps(value, sort_keys=True)


def id_part(axis: str, value: AxisValue) -> str:
    """Return what an axis value adds to a cell's id; empty where it is not given."""
    text = value_text(axis, value)
    if text is None:
        return ""
    if axis == "mem_fraction" and isinstance(value, int | float) and round(value, 2) == value:
        text = f"{value:.2f}"
    short = _KNOWN[axis][0] if axis in _KNOWN else axis.replace("_", "-") + "-"
    if axis == "oea" and not text[0].isdigit():
        short = "oea-"
    return short + re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")


def words(axis: str, value: AxisValue, known: Iterable[str]) -> list[str]:
    """Return the names that a value such as `a+b` holds, each one of those that are declared.

    Raises:
        SgmatrixError: `config_rejected` for a name that is not declared, or twice there.
    """
    if value is None:
        return []
    names = value.split("+") if isinstance(value, str) else [repr(value)]
    declared = {"environment": "environments", "patches": "patches"}[axis]
    for name in names:
        if name not in known:
            raise SgmatrixError(
                "config_rejected",
                f"axes.{axis}: {name!r} is not one of {declared}: {sorted(known)}",
                fix=f"declare it below `{declared}`, or write null for none",
            )
    if len(set(names)) < len(names):
        raise SgmatrixError(
            "config_rejected", f"axes.{axis}: {value!r} names one twice", fix="name each once"
        )
    return names


def given_by(
    point: Point, environments: Mapping[str, Mapping[str, str]], patches: Iterable[str]
) -> Given:
    """Return what the axes of a point set; two axes may not set the same thing.

    A flag or a variable whose value is null is left out, also where the engine declares it.

    Args:
        point: axis name to value.
        environments: the sets of environment variables that the campaign names.
        patches: the names of its patches.

    Raises:
        SgmatrixError: `config_rejected`.
    """
    given = Given()
    setter: dict[str, str] = {}
    for axis, value in point.items():
        flags: dict[str, AxisValue] = {}
        env: dict[str, str] = {}
        if axis == "parallelism":
            flags |= parallelism_flags(str(value))
        elif axis == "oea":
            env = oea_environment(value)
        elif axis == "environment":
            env = _environment(value, environments)
        elif axis == "patches":
            given.patches += words(axis, value, list(patches))
        elif is_variable(axis):
            env = _variable(axis, value)
            given.unset |= {axis} - env.keys()
        elif axis != "engine":
            if axis == "decode_steps":
                _check_decode_steps(value)
            flags[axis_flags(axis, [value])[0]] = value
        for kind, name in [("server flag", f) for f in flags] + [("variable", v) for v in env]:
            if name in setter:
                raise SgmatrixError(
                    "config_rejected",
                    f"axes {setter[name]} and {axis} both set the {kind} {name}",
                    fix="keep one of them",
                )
            setter[name] = axis
        given.flags |= flags
        given.env |= env
    return given


def _check_decode_steps(value: AxisValue) -> None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return
    raise SgmatrixError(
        "config_rejected",
        f"axes.decode_steps: {value!r} is no whole number of 1 or more",
        fix="write one, or null for the engine's own",
    )


def _environment(value: AxisValue, environments: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    env: dict[str, str] = {}
    for name in words("environment", value, environments):
        if twice := sorted(env.keys() & environments[name].keys()):
            raise SgmatrixError(
                "config_rejected",
                f"axes.environment: {value!r} sets {twice[0]} twice",
                fix="keep it in one of the sets",
            )
        env |= environments[name]
    return env


def _variable(axis: str, value: AxisValue) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, str):
        raise SgmatrixError(
            "config_rejected",
            f"axes.{axis}: {value!r} is no text",
            fix="write what the variable is to hold in quotes, or null to leave it out",
        )
    return {axis: value}


def axis_flags(axis: str, values: Sequence[AxisValue]) -> list[str]:
    """Return the server flags that an axis sets, in Python's spelling."""
    if axis == "parallelism":
        return sorted({flag for value in values for flag in parallelism_flags(str(value))})
    if axis in _KNOWN:
        flag = _KNOWN[axis][1]
        return [flag] if flag else []
    return [] if is_variable(axis) else [flag_name(axis)]


def flag_arguments(flags: Mapping[str, AxisValue]) -> list[str]:
    """Return flags as an argument list.

    True is a bare flag, false and None are left out, a list is several arguments, a mapping is
    JSON.
    """
    arguments: list[str] = []
    for name in sorted(flags):
        value = flags[name]
        if value is None or value is False:
            continue
        arguments.append("--" + name.replace("_", "-"))
        if isinstance(value, list):
            arguments += [str(value_text(name, one)) for one in value]
        elif value is not True:
            arguments.append(str(value_text(name, value)))
    return arguments
