"""Whether a finding still stands for a campaign: its model, its hardware, its engine. No I/O.

An entry that does not say one of them is never taken as valid for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgmatrix.plan.cells import Cell
from sgmatrix.plan.ledger import Conditions


@dataclass(frozen=True)
class Here:
    """What a campaign measures, and on what."""

    model: str
    hardware: tuple[str, ...]
    """Names of the GPUs, or that of the processor where there are none; empty: not known."""
    gpus: tuple[int, ...]
    """GPUs of the cells."""
    engines: tuple[str, ...]
    """SGLang versions of the cells."""


def hardware_names(node: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a node computes on, from its facts; empty where they do not say."""
    gpus = node.get("gpus")
    if gpus is None:
        return ()
    names = [gpu.get("name") for gpu in gpus] if gpus else [node.get("processor")]
    return tuple(dict.fromkeys(str(name) for name in names if name))


def here_of(model: str, cells: Iterable[Cell], node: Mapping[str, Any]) -> Here:
    """Return what those cells of a campaign are."""
    some = list(cells)
    return Here(
        model=model,
        hardware=hardware_names(node),
        gpus=tuple(sorted({cell.gpus for cell in some})),
        engines=tuple(sorted({cell.engine_version for cell in some})),
    )


def differing(found: Conditions, here: Here) -> tuple[str, ...]:
    """Return what makes an entry one to be retested; empty where it is valid as it stands."""
    return tuple(_differing(found, here))


def _differing(found: Conditions, here: Here) -> Iterator[str]:
    if found.model is None:
        yield "the entry names no model"
    elif found.model.casefold() != here.model.casefold():
        yield f"model {here.model}, not {found.model}"
    yield from _hardware(found, here)
    if found.engine_version is None and found.engine_commit is None:
        yield "the entry names no engine version"
    elif other := [one for one in here.engines if not _same_engine(found, one)]:
        yield f"engine {_listed(other)}, not {engine_text(found)}"


def _hardware(found: Conditions, here: Here) -> Iterator[str]:
    if found.hardware is None:
        yield "the entry names no hardware"
    elif not here.hardware:
        yield f"hardware not known here, found on {hardware_text(found)}"
    elif other := [one for one in here.hardware if found.hardware.casefold() not in one.casefold()]:
        yield f"hardware {_listed(other)}, not {hardware_text(found)}"
    elif found.gpus is not None and (counts := [n for n in here.gpus if n != found.gpus]):
        yield f"{_listed([str(n) for n in counts])} GPUs, not {found.gpus}"


def _same_engine(found: Conditions, version: str) -> bool:
    """Tell whether a version is the one that was found; a build names its commit as `+g1234567`."""
    if found.engine_version is not None:
        return version == found.engine_version
    built = re.search(r"[+.]g([0-9a-f]{7,40})\b", version)
    if found.engine_commit is None or built is None:
        return False
    short = min(len(found.engine_commit), len(built[1]))
    return found.engine_commit[:short] == built[1][:short]


def engine_text(found: Conditions) -> str:
    """Return the engine of an entry in words; empty where it names none."""
    if found.engine_version is not None:
        return f"sglang {found.engine_version}"
    return f"sglang commit {found.engine_commit}" if found.engine_commit else ""


def hardware_text(found: Conditions) -> str:
    """Return the hardware of an entry in words; empty where it names none."""
    count = f"{found.gpus}x " if found.gpus is not None else ""
    return f"{count}{found.hardware}" if found.hardware is not None else ""


def _listed(texts: Sequence[str]) -> str:
    return " and ".join(dict.fromkeys(texts))
