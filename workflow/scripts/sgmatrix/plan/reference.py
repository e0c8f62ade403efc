"""The campaign's JSON schema and its reference page, both made from the models.

    python -m sgmatrix.plan.reference       (with workflow/scripts on PYTHONPATH; `make docs`)

A test keeps the files in step with the models.
"""

from __future__ import annotations

import json
import types
import typing
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sgmatrix.core.files import write_text
from sgmatrix.plan.campaign import Campaign

SCHEMA = Path("workflow/schemas/campaign.schema.json")
REFERENCE = Path("config/README.md")

_HEAD = """# Campaign files

One YAML file is one campaign; `config.yaml` is the default one. Every key is listed here; an unknown key
is an error. YAML is read as people mean it: `NO`, `on` and `yes` are text, `010` is no number, a key that
stands twice is refused. Editors that know JSON schema can use `workflow/schemas/campaign.schema.json`.

This page and the schema are made from the models by `make docs`.

## Axes

| axis | values | server flag |
|---|---|---|
| `parallelism` | bundles: `tp8`, `tp4pp2`, `tp8ep8`, `tp2dp2`; `dp8ep8` is DP attention | `--tp-size`, `--pp-size`, `--dp-size`, `--ep-size`, `--enable-dp-attention` |
| `decode_steps` | 1, 2, … | `--num-continuous-decode-steps` |
| `mem_fraction` | between 0 and 1 | `--mem-fraction-static` |
| `engine` | a key of `engines` | |
| any other name | as the flag wants; `true` is a bare flag, `null` and `false` leave it out | `--` and the name, `_` written as `-` |

`design: full` measures every combination; `one_at_a_time` starts from the first value of each axis, the base,
and changes one axis at a time. The first cell is what the others are compared with.

## Keys
"""


def schema_text() -> str:
    """Return the JSON schema of a campaign file."""
    return json.dumps(Campaign.model_json_schema(), indent=2, ensure_ascii=False) + "\n"


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that an annotation holds, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in typing.get_args(annotation) for model in _models(inner)]


def _type_text(annotation: Any) -> str:
    """Return a type as a reader of YAML would say it."""
    origin = typing.get_origin(annotation)
    inner = typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type_text(inner[0])
    if origin is typing.Literal:
        return " or ".join(f"`{json.dumps(value)}`" for value in inner)
    if origin in (typing.Union, types.UnionType):
        texts = [_type_text(one) for one in inner if one is not type(None)]
        if {"text", "number", "switch"} <= set(texts):
            return "any value"
        return " or ".join(dict.fromkeys(texts))
    if origin is list:
        return f"list of {_type_text(inner[0])}"
    if origin is dict:
        return f"mapping of names to {_type_text(inner[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "mapping, below"
    names = {bool: "switch", int: "whole number", float: "number", str: "text"}
    return names.get(annotation, "any value")


def _default_text(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.default
    if isinstance(default, BaseModel):
        return "as below"
    return "none" if default is None else f"`{json.dumps(default)}`"


def _bounds_text(field: FieldInfo) -> str:
    """Return the bounds of a number, as `> 0, <= 99`."""
    signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    found = []
    for bound in field.metadata:
        for name, sign in signs.items():
            if (value := getattr(bound, name, None)) is not None:
                found.append(f"{sign} {value}")
    return ", ".join(found)


def _summary(field: FieldInfo) -> str:
    """Return the first line of the docstring of the model that a key holds."""
    models = _models(field.annotation)
    return (models[0].__doc__ or "").strip().splitlines()[0] if models else ""


def _rows(model: type[BaseModel], path: str) -> list[str]:
    rows = []
    for name, field in model.model_fields.items():
        key = f"{path}{name}"
        what = _type_text(field.annotation)
        bounds = _bounds_text(field)
        kind = f"{what}, {bounds}" if bounds else what
        meaning = (field.description or _summary(field)).replace("|", "\\|")
        rows.append(f"| `{key}` | {kind} | {_default_text(field)} | {meaning} |")
        named = typing.get_origin(field.annotation) is dict
        for inner in _models(field.annotation):
            rows += _rows(inner, f"{key}.<name>." if named else f"{key}.")
    return rows


def reference_text() -> str:
    """Return the reference page."""
    rows = ["| key | type | default | meaning |", "|---|---|---|---|", *_rows(Campaign, "")]
    return _HEAD + "\n" + "\n".join(rows) + "\n"


def main() -> None:
    """Write both files below the working directory."""
    write_text(SCHEMA, schema_text())
    write_text(REFERENCE, reference_text())


if __name__ == "__main__":
    main()
