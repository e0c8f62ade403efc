"""What the report says of the campaign's comparisons, and of OEA where the arms differ in it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgmatrix.core.layout import Layout
from sgmatrix.core.schema_versions import read_dataset
from sgmatrix.present.oea_view import OeaView, oea_view

Row = Mapping[str, Any]

_DIGITS_MOST = 6


@dataclass(frozen=True)
class ComparisonView:
    """One comparison."""

    name: str
    baseline: str
    variant: str
    metric: str
    primary: Row
    rows: tuple[Row, ...]
    """All load points, the primary one among them."""
    oea: OeaView | None


def comparison_views(
    layout: Layout, plan: Mapping[str, Any], table: Path
) -> tuple[ComparisonView, ...]:
    """Return the comparisons of a campaign in its own order; none without a table."""
    if not table.exists():
        return ()
    rows = read_dataset(table, "comparisons").to_pylist()
    names = list(dict.fromkeys(row["comparison"] for row in rows))
    return tuple(
        _view(layout, plan, [row for row in rows if row["comparison"] == name]) for name in names
    )


def _view(layout: Layout, plan: Mapping[str, Any], rows: list[Row]) -> ComparisonView:
    primary = next(row for row in rows if row["primary"])
    return ComparisonView(
        name=primary["comparison"],
        baseline=primary["baseline"],
        variant=primary["variant"],
        metric=primary["metric"],
        primary=primary,
        rows=tuple(rows),
        oea=oea_view(layout, plan, primary, rows),
    )


def comparison_lines(layout: Layout) -> list[str]:
    """Return one line per comparison, for the terminal."""
    table = layout.datasets / "comparisons.parquet"
    if not table.exists():
        return []
    rows = read_dataset(table, "comparisons").to_pylist()
    return [
        " ".join(
            part
            for part in (
                f"{row['comparison']}: {row['variant']} against {row['baseline']},",
                f"{row['metric']} at {row['load_id']}:",
                row["verdict_text"],
                effect_text(row),
                f"({interval_text(row)})" if row["interval_low_percent"] is not None else "",
                f"after {row['launches_used']} of {row['launches_planned']} launches per arm",
            )
            if part
        )
        for row in rows
        if row["primary"]
    ]


def effect_text(row: Row) -> str:
    """Return a change in percent with its sign, as fine as its interval; empty: there is none."""
    effect = row["effect_percent"]
    return "" if effect is None else f"{_signed(effect, _digits(row))} %"


def interval_text(row: Row) -> str:
    """Return the interval of a change; empty where there is none."""
    low, high = row["interval_low_percent"], row["interval_high_percent"]
    digits = _digits(row)
    return "" if low is None else f"{_signed(low, digits)} to {_signed(high, digits)} %"


def _digits(row: Row) -> int:
    """Return how many decimals tell a change and its interval.

    One, or as many as its half width needs for its first figure; and of a verdict that rests on a
    sign, as many as neither end needs to be no zero.
    """
    low, high = row["interval_low_percent"], row["interval_high_percent"]
    if low is None:
        return 1
    told = [(high - low) / 2]
    if row["verdict"] in ("better", "worse"):
        told += [abs(low), abs(high)]
    finest = min((one for one in told if one > 0), default=1.0)
    return min(_DIGITS_MOST, max(1, -math.floor(math.log10(finest))))


def _signed(value: float, digits: int) -> str:
    """Return a number with its sign; one that is rounded to 0 has none."""
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def heading(row: Row) -> str:
    """Return what a comparison came to, as a sentence about both cells."""
    baseline, variant, verdict = row["baseline"], row["variant"], row["verdict_text"]
    if row["verdict"] in ("better", "worse"):
        return f"{variant} is {verdict} than {baseline}"
    if row["verdict"] == "no_difference":
        return f"{variant} shows {verdict} from {baseline}"
    return f"{variant} against {baseline}: {verdict}"


def sentence(text: str) -> str:
    """Return a text with a capital letter in front and a full stop at its end."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def comparison_between(
    comparisons: Iterable[ComparisonView], one: str, other: str
) -> ComparisonView | None:
    """Return the first comparison of two cells, whichever is its baseline; None without one."""
    return next(
        (view for view in comparisons if {view.baseline, view.variant} == {one, other}), None
    )
