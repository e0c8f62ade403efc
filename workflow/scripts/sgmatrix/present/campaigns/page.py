"""A comparison of two campaigns as one self-contained page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from sgmatrix.present.templates import templates

_FILTERS: dict[str, Callable[..., Any]] = {
    "effect_text": effect_text,
    "interval_text": interval_text,
    "launches_text": launches_text,
    "load_text": load_text,
    "value_text": value_text,
    "clean": clean,
}


def page(compared: Compared) -> str:
    """Return the page; the same comparison gives the same bytes."""
    return (
        templates(_FILTERS)
        .get_template("campaigns.html.j2")
        .render(
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
    )
