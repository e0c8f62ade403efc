"""Results of others, as `config/reference` holds them: one YAML file and one CSV table each."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from sgmatrix.core.closed import Closed
from sgmatrix.core.errors import Refusal, SgmatrixError
from sgmatrix.core.problems import problem_lines
from sgmatrix.core.yaml_strict import read_yaml

COLUMNS = (
    "series",
    "source",
    "section",
    "concurrency",
    "metric",
    "value",
    "unit",
    "qualifier",
    "flags",
    "note",
)

Says = Literal["compute_bound", "single_stream_is_physical", "smaller_fraction_gives_more_cache"]


class Claim(Closed):
    """Something that a reference concluded and that can be held against the ceilings."""

    text: str = Field(min_length=1, description="in its own words")
    source: str = Field(min_length=1, description="where it says so")
    says: Says = Field(description="what is checked")


class ReferenceFile(Closed):
    """A YAML file of `config/reference`."""

    name: str
    results: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\.csv$", description="beside it")
    model: str = Field(description="file of config/models")
    hardware: str = Field(description="file of config/hardware")
    gpus: int = Field(ge=1)
    engine: str
    flags: dict[str, bool | int | float | str] = Field(description="server flags of its results")
    input_len: int = Field(ge=1, description="prompt tokens per request, as it says")
    output_len: int = Field(ge=1, description="output tokens per request, as it says")
    conditions: str
    source: str
    claims: list[Claim] = Field([])
    contradictions: list[str] = Field([])


@dataclass(frozen=True)
class Result:
    """One number of a reference."""

    series: str
    source: str
    concurrency: int | None
    metric: str
    value: float | None
    """None: it left it blank, or gave a range."""
    text: str
    """As it was given."""
    unit: str
    qualifier: str
    flags: str
    note: str


@dataclass(frozen=True)
class Reference:
    """A set of results with its conditions."""

    file: ReferenceFile
    results: tuple[Result, ...]

    def record(self) -> dict[str, Any]:
        """Return what `plan.json` keeps."""
        results = [asdict(one) for one in self.results]
        return {"file": json.loads(self.file.model_dump_json()), "results": results}

    def value(self, series: str, concurrency: int, metric: str) -> float | None:
        """Return one number; None where it was not given."""
        for one in self.results:
            if (one.series, one.concurrency, one.metric) == (series, concurrency, metric):
                return one.value
        return None


def read_reference(folder: Path, name: str) -> Reference:
    """Return a reference by the name of its file in `config/reference`.

    Raises:
        SgmatrixError: `facts_missing`, naming the file and what is wrong with it.
    """
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(one.stem for one in folder.glob("*.yaml"))) or "none"
        raise SgmatrixError(
            "facts_missing",
            f"references: there is no {path}; known: {known}",
            fix="name one of these, or take it out of references",
        )
    try:
        file = ReferenceFile.model_validate(read_yaml(path))
    except ValidationError as error:
        raise Refusal("facts_missing", problem_lines(path, ReferenceFile, error)) from None
    return Reference(file, tuple(_results(folder / file.results)))


def _results(path: Path) -> list[Result]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SgmatrixError("facts_missing", f"{path}: {error}") from None
    if rows and set(rows[0]) != set(COLUMNS):
        raise SgmatrixError(
            "facts_missing",
            f"{path}: its columns are {', '.join(map(str, rows[0]))}; "
            f"expected {', '.join(COLUMNS)}",
        )
    return [_result(row) for row in rows]


def _result(row: dict[str, str]) -> Result:
    at = row["concurrency"]
    return Result(
        series=row["series"],
        source=row["source"],
        concurrency=int(at) if at.isdecimal() else None,
        metric=row["metric"],
        value=_number(row["value"]),
        text=row["value"],
        unit=row["unit"],
        qualifier=row["qualifier"],
        flags=row["flags"],
        note=row["note"],
    )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
