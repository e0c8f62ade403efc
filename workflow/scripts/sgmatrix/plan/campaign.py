"""The campaign file as typed, closed models: an unknown key is an error, never ignored.

A misspelled key that is silently dropped measures the default in every cell; that is the
accident these models prevent.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from sgmatrix.core.errors import Refusal
from sgmatrix.core.redact import has_secret, is_secret_name
from sgmatrix.plan.yaml_strict import read_yaml

AxisValue = bool | int | float | str | dict[str, Any] | None
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]


class Closed(BaseModel):
    """A model that refuses unknown keys and numbers in disguise (text, booleans)."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Model(Closed):
    """The model that the servers load: a folder, or a recipe that the workflow makes."""

    path: str | None = Field(None, description="folder with config.json; ~ is the home folder")
    recipe: Literal["tiny-qwen3-moe"] | None = Field(None, description="made below results/models")

    @model_validator(mode="after")
    def _one_of(self) -> Model:
        if (self.path is None) == (self.recipe is None):
            raise ValueError("give exactly one of path and recipe")
        return self


class Engine(Closed):
    """A named SGLang installation."""

    python: str = Field(description="its interpreter; a relative path counts from the project")
    env: dict[str, str] = Field(
        {}, description="environment of its processes; `{project}` is the project's folder"
    )
    flags: dict[str, AxisValue] = Field(
        {}, description="server flags of every cell, by SGLang's names with _ for -"
    )
    device: Literal["cuda", "cpu"] = Field("cuda", description="cpu: real SGLang without a GPU")
    expected_start_s: float = Field(
        60, gt=0, description="seconds to ready, for the time estimate until history knows better"
    )
    min_free_memory_mb: int = Field(
        0, ge=0, description="MiB of host memory that a launch needs free"
    )

    @field_validator("env", "flags")
    @classmethod
    def _no_secret(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name, text in value.items():
            if is_secret_name(name) or (isinstance(text, str) and has_secret(text)):
                raise ValueError(
                    f"{name} is a secret: export it in the shell that runs snakemake; a campaign "
                    "file is copied into records"
                )
        return value


class Requests(Closed):
    """How many requests a load point offers: max(min, per_concurrency x concurrency)."""

    min: int = Field(8, ge=1, description="requests per load point, at the least")
    per_concurrency: int = Field(4, ge=1, description="requests per stream")


class Client(Closed):
    """SGLang's own load client, one and the same for all cells of a campaign."""

    engine: str | None = Field(None, description="installation it comes from; default: `engine`")
    kind: Literal["auto", "rust", "python"] = Field("auto", description="auto: rust where it is")


class Load(Closed):
    """What is offered to every running server."""

    dataset: Literal["random-ids"] = Field(
        "random-ids", description="random token ids of fixed lengths, no download"
    )
    concurrency: list[Annotated[int, Field(ge=1, le=65536)]] = Field(
        min_length=1,
        description="requests in flight; one load point each, measured from the lowest",
    )
    input_len: int = Field(ge=1, description="prompt tokens per request")
    output_len: int = Field(ge=1, description="output tokens per request")
    requests: Requests = Requests()
    seed: int = Field(1, ge=0, lt=2**31, description="campaign seed; each point derives its own")
    client: Client = Client()

    @field_validator("concurrency")
    @classmethod
    def _unique(cls, value: list[int]) -> list[int]:
        if len(set(value)) < len(value):
            raise ValueError("a concurrency stands twice")
        return sorted(value)


class Warmup(Closed):
    """Full concurrency waves in the cell's own shapes until two of them agree."""

    max_waves: int = Field(3, ge=0, le=100, description="0: no warm-up, points are flagged cold")
    agreement: float = Field(0.1, gt=0, lt=1, description="relative difference of two waves")


class Server(Closed):
    """Where the servers listen."""

    host: Literal["127.0.0.1"] = Field(
        "127.0.0.1", description="the servers are unauthenticated, so this machine only"
    )
    port: int | Literal["auto"] = Field("auto", description="auto: a free one per launch")

    @field_validator("port")
    @classmethod
    def _port(cls, value: int | str) -> int | str:
        if isinstance(value, int) and not 1024 <= value <= 65535:
            raise ValueError("allowed: auto or 1024 to 65535")
        return value


class Deadlines(Closed):
    """Seconds after which a phase is ended; no phase can wait for ever."""

    start_s: float = Field(600, gt=0, description="server start to ready")
    stall_s: float = Field(300, gt=0, description="a starting server that logs nothing")
    point_s: float = Field(600, gt=0, description="one load point")
    warmup_s: float = Field(600, gt=0, description="all warm-up waves of a launch")
    stop_s: float = Field(30, gt=0, description="from SIGTERM to SIGKILL")
    idle_s: float = Field(600, gt=0, description="a ready server that no job uses")


class Node(Closed):
    """The machine that the servers run on."""

    gpus: int = Field(0, ge=0, le=64, description="GPUs that the campaign may take")


class Rerun(Closed):
    """Present in a cell's own record: running the file makes a new attempt of these launches."""

    launches: list[Name] = Field(description="launches that are repeated")
    recorded: dict[str, Any] | None = Field(
        None, description="what it was measured with; shown where it differs now"
    )


def _check_axis_name(name: str) -> None:
    """Refuse what is no axis; the name becomes part of cell ids, and so of paths."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name):
        raise ValueError(f"axis {name!r}: a name is lower case letters, digits and _")
    if is_secret_name(name):
        raise ValueError(f"axis {name}: a secret is no axis; export it in the shell")


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
    launches: int = Field(
        1, ge=1, le=99, description="server starts per cell, the unit of repetition"
    )
    load: Load
    warmup: Warmup = Warmup()
    server: Server = Server()
    deadlines: Deadlines = Deadlines()
    rerun: Rerun | None = None

    @field_validator("axes")
    @classmethod
    def _axes(cls, axes: dict[str, list[AxisValue]]) -> dict[str, list[AxisValue]]:
        for name, values in axes.items():
            _check_axis_name(name)
            if not values:
                raise ValueError(f"axis {name}: has no value, so that there is no cell")
        return axes

    @field_validator("include")
    @classmethod
    def _include(cls, include: list[dict[str, AxisValue]]) -> list[dict[str, AxisValue]]:
        for name in (name for extra in include for name in extra):
            _check_axis_name(name)
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
        for key, name in (("engine", self.engine), ("load.client.engine", self.load.client.engine)):
            if name is not None and name not in self.engines:
                raise ValueError(f"{key} = {name!r} is not one of engines: {sorted(self.engines)}")
        return self


def _known_keys(location: tuple[int | str, ...]) -> list[str]:
    """Return the keys that the model at that location allows."""
    model: type[BaseModel] = Campaign
    for part in location:
        field = model.model_fields.get(str(part))
        if field is None:
            continue  # a name in a mapping of models, such as that of an engine
        inner = [field.annotation, *get_args(field.annotation)]
        models = [a for a in inner if isinstance(a, type) and issubclass(a, BaseModel)]
        if not models:
            return []
        model = models[0]
    return list(model.model_fields)


def _problem(path: Path, error: Any) -> str:
    location = error["loc"]
    key = ".".join(f"[{part}]" if isinstance(part, int) else str(part) for part in location)
    key = key.replace(".[", "[") or "the file"
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(location[-1]), _known_keys(location[:-1]), n=1)
        hint = (
            f", did you mean {near[0]!r}?" if near else f", allowed: {_known_keys(location[:-1])}"
        )
        return f"{path}: {key}: unknown key{hint}"
    if error["type"] == "missing":
        return f"{path}: {key}: missing"
    message = error["msg"].removeprefix("Value error, ")
    value = error["input"]
    shown = f" = {value!r}" if isinstance(value, str | int | float | bool) else ""
    return f"{path}: {key}{shown}: {message}"


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
            [_problem(path, e) for e in error.errors()],
            fix="see config/README.md",
        ) from None
