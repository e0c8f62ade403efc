"""From a point of the matrix to a cell: readable id, key, flags, environment, command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.hashing import digest
from sgmatrix.plan.axes import (
    ID_ORDER,
    Given,
    Point,
    flag_arguments,
    flag_name,
    given_by,
    id_part,
    is_variable,
)
from sgmatrix.plan.bundles import ranks_of
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.closed import AxisValue
from sgmatrix.plan.engines import Installation, project_paths
from sgmatrix.plan.model import ModelFacts
from sgmatrix.plan.oea import default_fill, oea_record
from sgmatrix.plan.oea_plugin import plugin_facts
from sgmatrix.plan.overrides import Settings
from sgmatrix.plan.patched_copy import PatchedCopy, python_path
from sgmatrix.plan.patches import patch_hash, planned_copy

_ID_LIMIT = 100

# Names that some file systems keep for devices.
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)

# Flags that the launcher sets itself.
_OURS = {"host", "port", "served_model_name", "model_path", "model", "config"}

_SIZES = {"tp_size", "pp_size", "dp_size", "ep_size"}
_PARALLEL = (*sorted(_SIZES), "enable_dp_attention")


def cell_id(point: Mapping[str, AxisValue]) -> str:
    """Return the readable, path-safe id of a point, such as `tp8-ds8-mf0.90-oea4`.

    It depends on the values alone, not on the order of the file.
    """
    order = {name: i for i, name in enumerate(ID_ORDER)}
    axes = sorted(point, key=lambda name: (order.get(name, len(order)), name))
    name = "-".join(part for axis in axes if (part := id_part(axis, point[axis]))) or "base"
    if len(name) > _ID_LIMIT or _DEVICES.fullmatch(name):
        name = f"{name[: _ID_LIMIT - 9]}-{digest(dict(point))[:8]}"
    return name


def server_flags(
    given: Mapping[str, AxisValue],
    engine_flags: Mapping[str, AxisValue],
    override_flags: Mapping[str, AxisValue] | None = None,
) -> dict[str, AxisValue]:
    """Return the server flags of a cell: the engine's, then an override's, then the axes'.

    Raises:
        SgmatrixError: `config_rejected` for a flag that the launcher sets, an impossible value,
            or an override of what an axis says.
    """
    overridden = {flag_name(name): value for name, value in (override_flags or {}).items()}
    if clash := sorted(overridden.keys() & given.keys()):
        raise SgmatrixError(
            "config_rejected",
            f"overrides set the server flag {clash[0]}, which an axis sets as well",
            fix="take it out of the override, or use exclude and include",
        )
    flags: dict[str, AxisValue] = {flag_name(name): value for name, value in engine_flags.items()}
    flags |= {**overridden, **given}
    for flag in sorted(_SIZES & flags.keys()):
        size = flags[flag]
        if size is None:
            continue
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise SgmatrixError(
                "config_rejected", f"{flag} = {size!r}", fix="write a whole number of 1 or more"
            )
    if taken := sorted(flags.keys() & _OURS):
        raise SgmatrixError(
            "config_rejected", f"{taken[0]} is set by the workflow itself", fix="take it out"
        )
    _check_fraction(flags.get("mem_fraction_static"))
    return flags


def _check_fraction(fraction: AxisValue) -> None:
    if fraction is None or (
        isinstance(fraction, int | float) and not isinstance(fraction, bool) and 0 < fraction < 1
    ):
        return
    near = f"; write {fraction / 100:g}" if isinstance(fraction, int) and 1 < fraction < 100 else ""
    raise SgmatrixError(
        "config_rejected",
        f"mem_fraction = {fraction!r}, allowed 0 < value < 1",
        fix=f"it is a share of the memory, not a percentage{near}",
    )


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
    deadlines: Mapping[str, float]
    """Seconds, by the keys of the campaign's `deadlines`."""
    unset: tuple[str, ...]
    """Variables that the server does not inherit, since another cell varies them."""
    patches: Mapping[str, str]
    """Hash of each patch by its name, in the order in which they are made."""
    oea: Mapping[str, Any] | None
    """`on`, and the `settings` that every rank has to prove; None where OEA is no axis."""
    copy: Mapping[str, Any] | None
    """The patched copy of the engine that is run, as `PatchedCopy.record` gives it."""

    @property
    def package(self) -> Path | None:
        """Folder of the patched package; None where the installed one is run."""
        return None if self.copy is None else PatchedCopy.from_record(self.copy).package


def make_cell(
    point: Point,
    campaign: Campaign,
    engine: Installation,
    model: ModelFacts,
    settings: Settings,
    project: Path,
) -> Cell:
    """Return the cell of one point of the matrix.

    Raises:
        SgmatrixError: `config_rejected` when its values cannot be.
    """
    declared = campaign.engines[engine.name]
    given = given_by(point, campaign.environments, campaign.patches)
    flags = server_flags(given.flags, declared.flags, settings.flags)
    env = _environment(declared.env, settings, given)
    if env.get("OEA_ENABLE") == "1":
        env.setdefault("OEA_FILL", default_fill(declared.device))
    patches = {name: campaign.patches[name] for name in given.patches}
    hashes = {name: patch_hash(patch) for name, patch in patches.items()}
    ranks = ranks_of({n: v for n, v in flags.items() if isinstance(v, int) and n in _PARALLEL})
    arguments = ["-m", "sglang.launch_server", "--model-path", model.path, *flag_arguments(flags)]
    key = digest(
        {
            # the model's folder may move; its digest stands for it
            "arguments": [a for a in arguments if a != model.path],
            "env": env,
            "engine": [engine.version, engine.lock, engine.contents],
            "patches": list(hashes.values()),
            "model": model.digest,
            **({"plugin": plugin_facts(engine).get("plugin_sha256")} if "oea" in point else {}),
        }
    )
    real_env = {name: project_paths(text, project) for name, text in env.items()}
    copy = None
    if patches:
        copy = planned_copy(Path(engine.package), engine.contents, patches)
        path = python_path([copy.folder, real_env.get("PYTHONPATH", "")])
        real_env["PYTHONPATH"] = path
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
        env=real_env,
        flags=flags,
        arguments=tuple(arguments),
        min_free_memory_mb=declared.min_free_memory_mb,
        expected_start_s=declared.expected_start_s,
        deadlines=settings.deadlines.model_dump(),
        unset=tuple(sorted({*_varied(campaign), *campaign.unset} - env.keys())),
        patches=hashes,
        oea=oea_record(point["oea"], declared.device) if "oea" in point else None,
        copy=None if copy is None else copy.record(),
    )


def _environment(engine: Mapping[str, str], settings: Settings, given: Given) -> dict[str, str]:
    """Return the declared environment of a cell: the engine's, an override's, the axes'."""
    if clash := sorted(settings.env.keys() & given.env.keys()):
        raise SgmatrixError(
            "config_rejected",
            f"overrides set the variable {clash[0]}, which an axis sets as well",
            fix="take it out of the override, or use exclude and include",
        )
    changed = {**settings.env, **given.env}
    if python := sorted(name for name in changed if name.startswith("PYTHON")):
        raise SgmatrixError(
            "config_rejected",
            f"{python[0]} in an axis or an override could hide the engine that was looked at",
            fix="declare another engine with it, and use the axis engine",
        )
    left_out = {name: text for name, text in engine.items() if name not in given.unset}
    return {**left_out, **changed}


def _varied(campaign: Campaign) -> set[str]:
    """Return the variables that the axes of a campaign vary; the shell's own never stand in."""
    axes = {*campaign.axes, *(axis for one in campaign.include for axis in one)}
    names = {axis for axis in axes if is_variable(axis)}
    if "environment" in axes:
        names |= {name for variables in campaign.environments.values() for name in variables}
    return names
