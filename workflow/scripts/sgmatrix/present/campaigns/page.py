"""A comparison of two campaigns as one self-contained page."""

from __future__ import annotations

from pathlib import Path

import jinja2

from sgmatrix.analysis.ab.inputs import less_is_better
from sgmatrix.analysis.campaigns.table import METRICS
from sgmatrix.present.campaigns.compared import Compared
from sgmatrix.present.campaigns.text import (
    change_text,
    launches_text,
    left_alone,
    load_text,
    remarks,
    statements,
    value_text,
)
from sgmatrix.present.clean import clean
from sgmatrix.present.comparisons import effect_text, interval_text

_TEMPLATES = Path(__file__).parents[4] / "report"


def page(compared: Compared) -> str:
    """Return the page; the same comparison gives the same bytes."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "effect_text": effect_text,
        "interval_text": interval_text,
        "launches_text": launches_text,
        "load_text": load_text,
        "value_text": value_text,
        "clean": clean,
    }
    return environment.get_template("campaigns.html.j2").render(
        base=compared.base,
        other=compared.other,
        version=compared.version,
        changed=[change_text(one, len(compared.found.cells)) for one in compared.changed],
        metrics=[
            (
                metric,
                "less" if less_is_better(metric) else "more",
                [row for row in compared.rows if row["metric"] == metric],
            )
            for metric in METRICS
        ],
        remarks=list(remarks(compared.rows)),
        apart=list(left_alone(compared)),
        statements=list(statements(compared)),
    )
