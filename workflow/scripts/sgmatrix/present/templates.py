"""The pages' templates: everything is escaped, an unknown name is an error, one style for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jinja2

from sgmatrix.present.figures import palette

FOLDER = Path(__file__).resolve().parents[3] / "report"


def templates(filters: Mapping[str, Callable[..., Any]], **known: Any) -> jinja2.Environment:
    """Return the templates with these filters; `known` names stand in all of them."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= dict(filters)
    environment.globals |= {"palette": palette, **known}
    return environment
