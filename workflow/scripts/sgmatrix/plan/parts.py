"""The parts of a campaign file as closed, typed models."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from sgmatrix.core.closed import Closed
from sgmatrix.core.redact import is_secret_name
from sgmatrix.plan.closed import AxisValue, Name, Seconds, VariableName, Word
from sgmatrix.plan.load_parts import LoadOverride

_OUR_VARIABLES = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"}


def checked_names(value: dict[str, Any]) -> dict[str, Any]:
    """Return environment variables by name; refuse what the workflow sets itself."""
    if any(name.startswith("OEA_") for name in value):
        raise ValueError("OEA_* is set by the axis oea, which proves it; use that")
    if ours := [n for n in value if n in _OUR_VARIABLES or n.startswith("SGMATRIX_")]:
        raise ValueError(f"{', '.join(ours)} is set by the workflow itself; take it out")
    return value


def checked_flags(value: dict[str, Any]) -> dict[str, Any]:
    """Return server flags by name; refuse what is no flag, and one flag in two spellings."""
    if bad := [name for name in value if not re.fullmatch(r"[a-z][a-z0-9_-]{0,79}", name)]:
        raise ValueError(f"{bad} is no flag; write SGLang's name without --, such as tp_size")
    tidy = [name.replace("-", "_") for name in value]
    if twice := sorted({name for name in tidy if tidy.count(name) > 1}):
        raise ValueError(f"{', '.join(twice)} is given in two spellings; keep one")
    return value


Variables = Annotated[dict[VariableName, str], AfterValidator(checked_names)]
Flags = Annotated[dict[str, AxisValue], AfterValidator(checked_flags)]


class Model(Closed):
    """The model that the servers load: a folder, or a recipe that the workflow makes."""

    path: str | None = Field(None, description="folder with config.json; ~ is the home folder")
    recipe: Literal["tiny-qwen3-moe", "qwen3-30b-a3b"] | None = Field(
        None, description="made below results/models: config and tokenizer, no weights"
    )
    facts: Word | None = Field(
        None,
        description="file of config/models that says its shape: for ceilings, and to plan where "
        "the folder is not",
    )

    @model_validator(mode="after")
    def _one_of(self) -> Model:
        if (self.path is None) == (self.recipe is None):
            raise ValueError("give exactly one of path and recipe")
        return self


class Engine(Closed):
    """A named SGLang installation."""

    python: str = Field(description="its interpreter; a relative path counts from the project")
    env: Variables = Field(
        {}, description="environment of its processes; `{project}` is the project's folder"
    )
    flags: Flags = Field(
        {}, description="server flags of every cell, by SGLang's names with _ for -"
    )
    described_by: str | None = Field(
        None,
        description="interpreter of another installation of the same version, which answers for "
        "this one where `python` is not there, to plan on another machine",
    )
    device: Literal["cuda", "cpu"] = Field("cuda", description="cpu: real SGLang without a GPU")
    expected_start_s: float = Field(
        60, gt=0, description="seconds to ready, for the time estimate until history knows better"
    )
    min_free_memory_mb: int = Field(
        0, ge=0, description="MiB of host memory that a launch needs free"
    )


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

    start_s: Seconds = Field(600, description="server start to ready")
    stall_s: Seconds = Field(300, description="a starting server that logs nothing")
    point_s: Seconds = Field(600, description="one load point")
    warmup_s: Seconds = Field(600, description="all warm-up waves of a launch")
    stop_s: Seconds = Field(30, description="from SIGTERM to SIGKILL")
    idle_s: Seconds = Field(600, description="a ready server that no job uses")


class Node(Closed):
    """The machine that the servers run on."""

    gpus: int = Field(0, ge=0, le=64, description="GPUs that the campaign may take")
    hardware: Word | None = Field(
        None,
        description="file of config/hardware that says what they can do, for ceilings; default: "
        "the one whose gpu_name the driver's name holds",
    )
    min_free_disk_mib: int = Field(
        512, ge=0, description="MiB of disk that a launch needs free for its records"
    )
    idle_memory_mib: int = Field(
        1024, ge=0, description="GPU memory in use above which a GPU is not empty"
    )


class Edit(Closed):
    """One text of one file of the engine, and what stands there instead."""

    file: str = Field(description="file of the engine, such as `sglang/srt/server_args.py`")
    find: str = Field(min_length=1, description="text that stands there")
    replace: str = Field(
        min_length=1, description="text that stands there instead; to delete, leave a comment"
    )
    count: int = Field(1, ge=1, description="how many times `find` stands in the file")

    @field_validator("file")
    @classmethod
    def _below_the_engine(cls, value: str) -> str:
        steps = value.split("/")
        if steps[0] != "sglang" or len(steps) < 2 or not set(steps).isdisjoint(("", ".", "..")):
            raise ValueError("allowed: a path below the package, such as sglang/srt/server_args.py")
        return value

    @model_validator(mode="after")
    def _changes(self) -> Edit:
        if self.find == self.replace:
            raise ValueError("find and replace are the same text")
        return self


class Patch(Closed):
    """A named change of the engine, made to a copy of its files, never to the installation."""

    about: str = Field("", description="why; shown in the report")
    edits: list[Edit] = Field(min_length=1, description="what is changed, in this order")


class DeadlinesOverride(Closed):
    """Keys of `deadlines` that are other for some cells."""

    start_s: Seconds | None = Field(None, description="instead of `deadlines.start_s`")
    stall_s: Seconds | None = Field(None, description="instead of `deadlines.stall_s`")
    point_s: Seconds | None = Field(None, description="instead of `deadlines.point_s`")
    warmup_s: Seconds | None = Field(None, description="instead of `deadlines.warmup_s`")
    stop_s: Seconds | None = Field(None, description="instead of `deadlines.stop_s`")
    idle_s: Seconds | None = Field(None, description="instead of `deadlines.idle_s`")


class Override(Closed):
    """What is other for the cells that meet a condition; a later one wins over an earlier one."""

    where: dict[str, AxisValue | list[AxisValue]] = Field(
        description="cells in which all of these axis values hold (a list: one of them)"
    )
    launches: int | None = Field(None, ge=1, le=99, description="server starts of these cells")
    load: LoadOverride | None = Field(None, description="other load points")
    deadlines: DeadlinesOverride | None = Field(None, description="other deadlines")
    flags: Flags = Field({}, description="server flags, over those of the engine")
    env: Variables = Field({}, description="environment, over that of the engine")


class Oea(Closed):
    """Opportunistic expert activation: how many experts each token may open itself."""

    k0: int = Field(ge=1, description="experts of a token's own choice; the rest is shared")
    k_max: int | None = Field(None, ge=1, description="experts per token; default: the model's")
    p: float | None = Field(None, gt=0, le=1, description="share of the router's score to cover")
    max_rank: int | None = Field(None, ge=1, description="how far down a token may look")
    fill: Literal["repeat", "mask", "distinct"] | None = Field(
        None, description="what unused slots hold; the CPU engine needs `distinct`"
    )
    core: Literal["auto", "eager", "triton"] | None = Field(
        None, description="what computes it; auto: one fused kernel on GPUs"
    )
    mask_padding: bool | None = Field(
        None, description="have the engine say which rows of a batch are padding"
    )

    @model_validator(mode="after")
    def _not_below_k0(self) -> Oea:
        for name, value in (("k_max", self.k_max), ("max_rank", self.max_rank)):
            if value is not None and value < self.k0:
                raise ValueError(f"{name} = {value} is below k0 = {self.k0}")
        return self


class Rerun(Closed):
    """Present in a cell's own record: running the file makes a new attempt of these launches."""

    launches: list[Name] = Field(description="launches that are repeated")
    recorded: dict[str, Any] | None = Field(
        None, description="what it was measured with; shown where it differs now"
    )


def axis_name_problem(name: str) -> str | None:
    """Return why a name is no axis, None where it is; it becomes part of cell ids and paths."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}|[A-Z][A-Z0-9_]{0,63}", name):
        return (
            f"axis {name!r}: a name is lower case letters, digits and _, or the name of an "
            "environment variable in capitals"
        )
    if is_secret_name(name):
        return f"axis {name}: a secret is no axis; export it in the shell"
    if name in _OUR_VARIABLES or name.startswith(("SGMATRIX_", "PYTHON", "OEA_")):
        return f"axis {name}: set by the workflow itself; take it out"
    return None
