"""The campaign file as one typed, closed model: an unknown key is an error, never ignored.

A misspelled key that is silently dropped measures the default in every cell; that is the
accident these models prevent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from sgmatrix.core.closed import Closed
from sgmatrix.core.errors import Refusal
from sgmatrix.core.problems import problem_lines
from sgmatrix.core.yaml_strict import read_yaml
from sgmatrix.plan.closed import AxisValue, Name, VariableName, Word
from sgmatrix.plan.compare_parts import Compare
from sgmatrix.plan.ledger import DEFAULT_LEDGER
from sgmatrix.plan.load_parts import Load, Telemetry, Validity, Warmup
from sgmatrix.plan.parts import (
    Deadlines,
    Engine,
    Model,
    Node,
    Override,
    Patch,
    Rerun,
    Server,
    Variables,
    axis_name_problem,
)
from sgmatrix.plan.probe_parts import Probe
from sgmatrix.plan.sanity import insane_places


class Campaign(Closed):
    """One campaign file."""

    campaign: Name = Field(description="results/<campaign>")
    study: str = Field(
        "sglang-matrix", min_length=1, max_length=200, description="MLflow experiment"
    )
    engine: str = Field(description="key of `engines`, the default of the engine axis")
    engines: dict[Name, Engine] = Field(min_length=1, description="SGLang installations by name")
    model: Model
    node: Node = Node()
    design: Literal["full", "one_at_a_time"] = Field(
        "full", description="every combination, or one axis at a time from the base"
    )
    axes: dict[str, list[AxisValue]] = Field(
        min_length=1, description="name to its values; the first value is the base"
    )
    include: list[dict[str, AxisValue]] = Field(
        [], description="more cells: the base with these values"
    )
    exclude: list[dict[str, AxisValue | list[AxisValue]]] = Field(
        [], description="cells to leave out: all of these values hold (a list: one of them)"
    )
    unset: list[VariableName] = Field(
        [], description="variables that servers do not inherit from the shell"
    )
    overrides: list[Override] = Field([], description="what is other for some cells")
    environments: dict[Word, Variables] = Field(
        {}, description="named sets of environment variables, values of the axis `environment`"
    )
    patches: dict[Word, Patch] = Field(
        {}, description="named changes of the engine, values of the axis `patches`"
    )
    launches: int = Field(
        1, ge=1, le=99, description="server starts per cell, the unit of repetition"
    )
    load: Load
    warmup: Warmup = Warmup()
    telemetry: Telemetry = Telemetry()
    validity: Validity = Validity()
    server: Server = Server()
    deadlines: Deadlines = Deadlines()
    probe: Probe = Probe()
    compare: list[Compare] = Field([], description="pairs of cells, decided over several launches")
    references: list[Word] = Field(
        [], description="files of config/reference, shown beside own results"
    )
    ledger: str | None = Field(
        DEFAULT_LEDGER,
        min_length=1,
        description="file of findings; a relative path counts from the project; null: none",
    )
    rerun: Rerun | None = None

    @field_validator("axes")
    @classmethod
    def _axes(cls, axes: dict[str, list[AxisValue]]) -> dict[str, list[AxisValue]]:
        problems = [problem for name in axes if (problem := axis_name_problem(name))]
        problems += [
            f"axis {name}: has no value, so that there is no cell"
            for name, values in axes.items()
            if not values
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return axes

    @field_validator("include")
    @classmethod
    def _include(cls, include: list[dict[str, AxisValue]]) -> list[dict[str, AxisValue]]:
        names = dict.fromkeys(name for extra in include for name in extra)
        if problems := [problem for name in names if (problem := axis_name_problem(name))]:
            raise ValueError("; ".join(problems))
        return include

    @field_validator("campaign")
    @classmethod
    def _not_reserved(cls, value: str) -> str:
        if value in ("models", "mlartifacts"):
            raise ValueError(
                f"results/{value} is kept for the workflow itself; choose another name"
            )
        return value

    @model_validator(mode="after")
    def _engines_exist(self) -> Campaign:
        named: dict[str, AxisValue] = {
            "engine": self.engine,
            "load.client.engine": self.load.client.engine,
        }
        named |= {f"axes.engine[{i}]": name for i, name in enumerate(self.axes.get("engine", []))}
        named |= {f"include[{i}].engine": one.get("engine") for i, one in enumerate(self.include)}
        wrong = [
            f"{key} = {name!r} is not one of engines: {sorted(self.engines)}"
            for key, name in named.items()
            if name is not None and name not in self.engines
        ]
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    @field_validator("compare")
    @classmethod
    def _named_once(cls, compare: list[Compare]) -> list[Compare]:
        names = [one.name for one in compare]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two comparisons are named {', '.join(twice)}")
        return compare

    @model_validator(mode="after")
    def _durations_can_be_told(self) -> Campaign:
        load = self.load
        if load.requests.duration_s and load.concurrency and self.warmup.max_waves == 0:
            raise ValueError(
                "load.requests.duration_s of a closed loop needs a warm-up, whose throughput says "
                "how many requests fit; set warmup.max_waves above 0, or per_concurrency"
            )
        return self

    @model_validator(mode="after")
    def _points_can_end(self) -> Campaign:
        rule, limit_s = self.load.requests, self.deadlines.point_s
        if rule.duration_s is not None and rule.duration_s >= limit_s:
            raise ValueError(
                f"load.requests.duration_s = {rule.duration_s:g} is not below "
                f"deadlines.point_s = {limit_s:g}: no point could end"
            )
        for rate in self.load.request_rate:
            span_s = rule.min / rate
            if span_s >= limit_s:
                raise ValueError(
                    f"load.request_rate {rate:g}: load.requests.min = {rule.min} requests come in "
                    f"{span_s:g} s, deadlines.point_s is {limit_s:g}"
                )
        return self

    @model_validator(mode="before")
    @classmethod
    def _sane(cls, data: Any) -> Any:
        if isinstance(data, dict):
            checked = {key: value for key, value in data.items() if key != "rerun"}
            if places := list(insane_places(checked)):
                raise ValueError("\n".join(places))
        return data


def read_campaign(path: Path) -> Campaign:
    """Return the campaign of one YAML file.

    Raises:
        SgmatrixError: `config_rejected`, naming every problem of the file at once.
    """
    data = read_yaml(path)
    try:
        return Campaign.model_validate(data)
    except ValidationError as error:
        raise Refusal(
            "config_rejected",
            problem_lines(path, Campaign, error),
            fix="see config/README.md",
        ) from None
