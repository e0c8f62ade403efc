"""Facts of models and hardware in `config/models` and `config/hardware`, each with its source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import Field, ValidationError, model_validator

from sgmatrix.core.closed import Closed
from sgmatrix.core.errors import Refusal, SgmatrixError
from sgmatrix.core.facts.formats import Unit
from sgmatrix.core.facts.hardware import Device, Link
from sgmatrix.core.facts.hf_config import shape_from_config
from sgmatrix.core.facts.model import Shape
from sgmatrix.core.problems import problem_lines
from sgmatrix.core.yaml_strict import read_yaml

MODELS, HARDWARE = Path("config/models"), Path("config/hardware")
"""Folders of the files, in the project."""

_Positive = Annotated[float, Field(gt=0)]
_Share = Annotated[float, Field(gt=0, le=1)]
_Count = Annotated[int, Field(ge=2)]
_GIB = 2**30


class _Sourced(Closed):
    sources: dict[str, str] = Field(description="where each of the facts comes from")

    @model_validator(mode="after")
    def _every_fact_has_one(self) -> _Sourced:
        facts = set(type(self).model_fields) - {"sources", "name", "gpu_name"}
        given = {key for key in facts if getattr(self, key) not in (None, {})}
        link = getattr(self, "link", None)
        known = facts | {"allreduce_s"}
        if link is not None and link.allreduce_s:
            given.add("allreduce_s")
        if missing := sorted(given - self.sources.keys()):
            raise ValueError(f"sources: none for {', '.join(missing)}")
        if unknown := sorted(self.sources.keys() - known):
            raise ValueError(f"sources: {', '.join(unknown)} is no fact here")
        return self


class ModelFile(_Sourced):
    """A file of `config/models`."""

    name: str
    config: dict[str, Any] = Field(description="keys of its config.json")
    precision: dict[str, str] = Field({}, description="format of each part that is not bf16")


class LinkFacts(Closed):
    """A link in a file of `config/hardware`."""

    name: str
    peak_bytes_s: _Positive
    practical_bytes_s: _Positive
    in_network_reduce: bool = False
    latency_s: dict[_Count, _Positive] = Field({})
    allreduce_s: dict[_Count, list[tuple[_Positive, _Positive]]] = Field({})

    @model_validator(mode="before")
    @classmethod
    def _pairs(cls, data: Any) -> Any:
        """Take the two-item lists of YAML for pairs."""
        if isinstance(data, dict) and isinstance(table := data.get("allreduce_s"), dict):
            pairs = {
                n: [tuple(map(float, one)) if isinstance(one, list) else one for one in rows]
                for n, rows in table.items()
                if isinstance(rows, list)
            }
            return {**data, "allreduce_s": {**table, **pairs}}
        return data


class Practical(Closed):
    """Shares of the peaks that large transfers and matrix products reach."""

    memory: _Share
    compute: _Share


class HardwareFile(_Sourced):
    """A file of `config/hardware`."""

    name: str
    gpu_name: str = Field(min_length=2, description="part of the name that the driver gives")
    memory_gib: _Positive
    memory_bytes_s: _Positive
    flops_s: dict[Unit, _Positive]
    practical: Practical
    power_limit_w: _Positive
    link: LinkFacts | None = None

    @model_validator(mode="after")
    def _each_unit_has_a_rate(self) -> HardwareFile:
        if missing := [unit for unit in get_args(Unit) if unit not in self.flops_s]:
            raise ValueError(
                f"flops_s: none for {', '.join(missing)}; a format without a unit of its own runs "
                "at the rate of another"
            )
        return self

    def device(self) -> Device:
        """Return the facts as the ceilings take them."""
        link = self.link
        return Device(
            name=self.name,
            memory_bytes=self.memory_gib * _GIB,
            memory_bytes_s=self.memory_bytes_s,
            practical_memory_bytes_s=self.memory_bytes_s * self.practical.memory,
            flops_s=dict(self.flops_s),
            practical_compute=self.practical.compute,
            power_limit_w=self.power_limit_w,
            link=None
            if link is None
            else Link(
                name=link.name,
                peak_bytes_s=link.peak_bytes_s,
                practical_bytes_s=link.practical_bytes_s,
                latency_s=dict(link.latency_s),
                in_network_reduce=link.in_network_reduce,
                allreduce_s={n: tuple(sorted(rows)) for n, rows in link.allreduce_s.items()},
            ),
        )


def _read(path: Path, kind: type[Closed], what: str) -> Any:
    if not path.is_file():
        known = ", ".join(sorted(one.stem for one in path.parent.glob("*.yaml"))) or "none"
        raise SgmatrixError(
            "facts_missing",
            f"{what} {path.stem!r}: there is no {path}; known: {known}",
            fix=f"write one, with a source for each fact, or name one of these in {what}",
        )
    try:
        return kind.model_validate(read_yaml(path))
    except ValidationError as error:
        raise Refusal("facts_missing", problem_lines(path, kind, error)) from None


def model_file(folder: Path, name: str) -> ModelFile:
    """Return the facts of a model by the name of its file in `config/models`.

    Raises:
        SgmatrixError: `facts_missing`, naming the file and every problem of it.
    """
    found: ModelFile = _read(folder / f"{name}.yaml", ModelFile, "model.facts")
    return found


def model_shape(file: ModelFile) -> Shape:
    """Return the shape that a facts file describes."""
    return shape_from_config(file.config, file.name, precision=file.precision)


def folder_shape(folder: Path) -> Shape:
    """Return the shape of a model on disk, from its config.json and quantisation files.

    Raises:
        SgmatrixError: `facts_missing` for an architecture or a quantisation that is not known.
    """
    config, quantisation = folder_config(folder)
    return shape_from_config(config, folder.name, quantisation)


def folder_config(folder: Path) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the config.json of a model on disk, and its hf_quant_config.json where it has one.

    Raises:
        SgmatrixError: `facts_missing` for a file that cannot be read.
    """
    quantisation = folder / "hf_quant_config.json"
    return _json(folder / "config.json"), _json(quantisation) if quantisation.is_file() else None


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SgmatrixError("facts_missing", f"{path}: {error}") from None
    if not isinstance(data, dict):
        raise SgmatrixError("facts_missing", f"{path}: no JSON object")
    return data


def hardware_file(folder: Path, name: str) -> HardwareFile:
    """Return the facts of a GPU by the name of its file in `config/hardware`.

    Raises:
        SgmatrixError: `facts_missing`, naming the file and every problem of it.
    """
    found: HardwareFile = _read(folder / f"{name}.yaml", HardwareFile, "node.hardware")
    return found


def hardware_for(folder: Path, gpu_name: str) -> HardwareFile | None:
    """Return the facts of the GPU that a driver names so; None where no file knows it.

    Of several that match, the one whose `gpu_name` says most.
    """
    files = [hardware_file(folder, one.stem) for one in sorted(folder.glob("*.yaml"))]
    matching = [one for one in files if one.gpu_name.casefold() in gpu_name.casefold()]
    return max(matching, key=lambda one: len(one.gpu_name), default=None)
