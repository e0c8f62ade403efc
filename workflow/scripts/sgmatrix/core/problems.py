"""What is wrong with a campaign file, one line per problem: file, key, value, what is allowed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

_ALLOWED = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "dict_type": "a mapping",
    "list_type": "a list",
}
# How pydantic names the members of a union, in the location of an error.
_MEMBER = re.compile(r"(?:bool|int|float|str|none|(?:dict|list|literal|constrained-\w+)\b.*)")


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that an annotation holds, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models(inner)]


def _known_keys(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Return the keys that the model at that location allows."""
    for part in location:
        field = model.model_fields.get(str(part))
        if field is None:
            continue  # a name in a mapping of models, such as that of an engine, or a place
        inner = _models(field.annotation)
        if not inner:
            return []
        model = inner[0]
    return list(model.model_fields)


def _place(error: Mapping[str, Any]) -> tuple[int | str, ...]:
    """Return the location of an error, without the member of a union that it is about."""
    location: tuple[int | str, ...] = error["loc"]
    if len(location) > 1 and error["type"] in (*_ALLOWED, "literal_error"):
        last = location[-1]
        if isinstance(last, str) and _MEMBER.fullmatch(last):
            return location[:-1]
    return location


def _line(path: Path, model: type[BaseModel], errors: list[Mapping[str, Any]]) -> str:
    """Return the line for the errors of one place: several where it is a union."""
    error = errors[0]
    location = _place(error)
    key = ".".join(f"[{part}]" if isinstance(part, int) else str(part) for part in location)
    key = key.replace(".[", "[") or "the file"
    if error["type"] == "extra_forbidden":
        known = _known_keys(model, location[:-1])
        near = difflib.get_close_matches(str(location[-1]), known, n=1)
        hint = f", did you mean {near[0]!r}?" if near else f", allowed: {known}"
        return f"{path}: {key}: unknown key{hint}"
    if error["type"] == "missing":
        return f"{path}: {key}: missing"
    message = error["msg"].removeprefix("Value error, ")
    if len(errors) > 1:
        kinds = [_ALLOWED.get(e["type"]) or e.get("ctx", {}).get("expected", "") for e in errors]
        message = f"allowed: {', '.join(dict.fromkeys(kind for kind in kinds if kind))}"
    value = error["input"]
    plain = isinstance(value, str | int | float | bool)
    shown = f" = {value!r}" if plain or len(errors) > 1 else ""
    if len(shown) > 120:
        shown = f"{shown[:117]}…"
    return f"{path}: {key}{shown}: {message}"


def problem_lines(path: Path, model: type[BaseModel], refusal: ValidationError) -> list[str]:
    """Return a line per problem, in the order of the model's keys."""
    places: dict[tuple[int | str, ...], list[Mapping[str, Any]]] = {}
    for error in refusal.errors():
        places.setdefault(_place(error), []).append(error)
    # what lies inside a list that may itself be one value of a union is about that same value
    inner = [p for p in places if any(p[: len(q)] == q and p != q for q in places)]
    lines = [_line(path, model, errors) for place, errors in places.items() if place not in inner]
    # what holds of the file as a whole names its own places, one to a line
    head = f"{path}: the file: "
    return [
        f"{path}: {one}" if line.startswith(head) else one
        for line in lines
        for one in line.removeprefix(head).split("\n" if line.startswith(head) else "\0")
    ]
