"""Findings that stay: what was tried, under which conditions, and what came of it.

A ledger is one YAML file of entries. This module reads it strictly; which cells of a campaign
an entry is about, and whether it still holds there, is said by `analysis.ledger`.
"""

from __future__ import annotations

import hashlib
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from sgmatrix.core.closed import Closed
from sgmatrix.core.errors import Refusal, SgmatrixError
from sgmatrix.core.problems import problem_lines
from sgmatrix.core.yaml_strict import read_yaml
from sgmatrix.plan.bundles import parallelism_flags
from sgmatrix.plan.closed import AxisValue, Name
from sgmatrix.plan.oea import oea_of
from sgmatrix.plan.parts import axis_name_problem
from sgmatrix.plan.sanity import insane_places

DEFAULT_LEDGER = "config/ledger.yaml"

ANY = "any"
"""As a value of `applies_to`: given, whatever the value; of OEA, on."""
CONCURRENCY = "concurrency"
"""The one word of `applies_to` that is about a load point."""

Status = Literal["ruled_out", "helped", "neutral", "workaround", "open"]
Where = dict[str, AxisValue | list[AxisValue]]
"""Axis values that a cell has, all of them; a list: one of them."""

_BOUNDS = {"at_least", "below"}


def bounds_of(value: AxisValue) -> dict[str, float] | None:
    """Return the bounds that a value of `applies_to` is; None where it is a value itself."""
    if not isinstance(value, dict) or not value or not value.keys() <= _BOUNDS:
        return None
    return {name: float(bound) for name, bound in value.items()}


def _checked_day(text: str) -> str:
    if len(text) == 10:
        date.fromisoformat(text)
        return text
    raise ValueError("a day is written as 2026-11-29")


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


def _checked_where(where: Where) -> Where:
    """Return axis values; refuse an axis or a value that no cell can have."""
    if not where:
        raise ValueError("names no axis; leave applies_to out where no cell repeats the claim")
    for axis, values in where.items():
        if problem := axis_name_problem(axis):
            raise ValueError(problem)
        for value in values if isinstance(values, list) else [values]:
            try:
                _check_value(axis, value)
            except SgmatrixError as refusal:
                raise ValueError(refusal.facts) from None
    return where


def _check_value(axis: str, value: AxisValue) -> None:
    if isinstance(value, dict) and value and value.keys() <= _BOUNDS:
        wrong = [
            one
            for one in value.values()
            if isinstance(one, bool) or not isinstance(one, int | float)
        ]
        if wrong:
            raise ValueError(f"{axis}: the bound {wrong[0]!r} is no number")
    elif axis == CONCURRENCY and (not isinstance(value, int) or isinstance(value, bool)):
        raise ValueError(f"{axis}: {value!r} is no whole number")
    elif value == ANY:
        return
    elif axis == "parallelism":
        parallelism_flags(str(value))
    elif axis == "oea":
        oea_of(value)


Day = Annotated[str, AfterValidator(_checked_day)]
Alternatives = Annotated[
    list[Annotated[Where, AfterValidator(_checked_where)]], BeforeValidator(_as_list)
]


class Conditions(Closed):
    """Where it was found; what is not said, the entry is never taken as valid for."""

    model: str | None = Field(None, min_length=1, description="name of the model's folder")
    hardware: str | None = Field(
        None, min_length=3, description="part of the name that the driver gives to the GPU"
    )
    gpus: int | None = Field(None, ge=1, description="GPUs of the server")
    engine_version: str | None = Field(None, min_length=1, description="of SGLang")
    engine_commit: str | None = Field(
        None, pattern=r"^[0-9a-f]{7,40}$", description="of SGLang, where the version is not known"
    )
    load: str | None = Field(None, min_length=1, description="lengths, prompts, concurrency")


class Evidence(Closed):
    """One thing that the entry rests on: a cell that was measured, or a reference."""

    campaign: str | None = Field(None, description="campaign of the cell")
    cell: str | None = Field(None, description="its id")
    key: str | None = Field(None, pattern=r"^[0-9a-f]{64}$", description="its key")
    reference: str | None = Field(None, min_length=1, description="file or publication")
    section: str | None = Field(None, min_length=1, description="where in it")

    @model_validator(mode="after")
    def _one_kind(self) -> Evidence:
        if (self.key is None) == (self.reference is None):
            raise ValueError("give the key of a cell, or a reference")
        if self.key is not None and not (self.campaign and self.cell):
            raise ValueError("a key needs the campaign and the cell that it belongs to")
        return self


class Effect(Closed):
    """What came of it, in words, and in numbers where they are known."""

    text: str = Field(min_length=1, description="in words")
    metric: str | None = Field(None, description="column of `points`")
    percent: float | None = Field(None, description="change of the metric")
    low_percent: float | None = Field(None, description="lower end of its interval")
    high_percent: float | None = Field(None, description="upper end of its interval")

    @model_validator(mode="after")
    def _whole(self) -> Effect:
        if self.percent is not None and self.metric is None:
            raise ValueError("percent needs the metric that it is of")
        low, high = self.low_percent, self.high_percent
        if (low is None) != (high is None):
            raise ValueError("an interval has two ends: low_percent and high_percent")
        if low is not None and high is not None:
            if self.percent is None:
                raise ValueError("an interval needs percent, the change that it is about")
            if low > high:
                raise ValueError(f"low_percent = {low:g} is above high_percent = {high:g}")
        return self


class Entry(Closed):
    """One finding."""

    id: Name = Field(description="its name, once in the file")
    status: Status = Field(description="what became of the claim")
    claim: str = Field(min_length=1, description="one sentence that can be true or false")
    conditions: Conditions = Field(description="where it was found")
    applies_to: Alternatives = Field(
        [], description="axis values of a cell that repeats the claim, or a list of alternatives"
    )
    evidence: list[Evidence] = Field(min_length=1, description="what it rests on")
    effect: Effect = Field(description="what came of it")
    date: Day = Field(description="day of the last measurement, or of the look at the reference")
    note: str | None = Field(None, min_length=1, description="what else to know")


class Ledger(Closed):
    """A ledger file."""

    entries: list[Entry] = Field(description="the findings")

    @model_validator(mode="after")
    def _named_once(self) -> Ledger:
        names = [one.id for one in self.entries]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two entries are named {', '.join(twice)}")
        return self

    @model_validator(mode="before")
    @classmethod
    def _sane(cls, data: Any) -> Any:
        if isinstance(data, dict) and (places := list(insane_places(data))):
            raise ValueError("\n".join(places))
        return data


def ledger_file(named: str | None, project: Path) -> Path | None:
    """Return the ledger of a campaign; None where it wants none, or the default is not there.

    Args:
        named: the campaign's key `ledger`.
        project: the folder that a relative path counts from.

    Raises:
        SgmatrixError: `config_rejected` for a file that is named and is not there.
    """
    if named is None:
        return None
    file = project / Path(named).expanduser()
    if file.is_file():
        return file
    if named == DEFAULT_LEDGER:
        return None
    raise SgmatrixError(
        "config_rejected",
        f"ledger = {named!r}: there is no file {file}",
        fix="name an existing file, or write null for none",
    )


def ledger_digest(file: Path) -> str:
    """Return a hash of what a ledger holds."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def read_ledger(file: Path) -> tuple[Entry, ...]:
    """Return the entries of a ledger in the order of the file.

    Raises:
        SgmatrixError: `ledger_rejected`, naming every problem of the file at once.
    """
    data = read_yaml(file)
    try:
        return tuple(Ledger.model_validate(data).entries)
    except ValidationError as error:
        raise Refusal(
            "ledger_rejected", problem_lines(file, Ledger, error), fix="see docs/ledger.md"
        ) from None
