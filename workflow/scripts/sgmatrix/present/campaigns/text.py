"""A comparison of two campaigns as text, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sgmatrix.analysis.ab.inputs import less_is_better
from sgmatrix.analysis.campaigns.provenance import Change
from sgmatrix.analysis.campaigns.table import METRICS
from sgmatrix.dataset.figures import offered
from sgmatrix.present.campaigns.compared import Compared
from sgmatrix.present.clean import clean
from sgmatrix.present.comparisons import effect_text, interval_text

_TEXT_COLUMNS = (0, 6)
APART = (
    "The launches of two campaigns are not interleaved: what drifted between them, the node or its "
    "neighbours, is in every difference."
)


def told(compared: Compared) -> str:
    """Return the whole comparison."""
    base, other = compared.base, compared.other
    lines = [
        f"base   {base.label}  sglang {compared.version(base)}",
        f"other  {other.label}  sglang {compared.version(other)}",
        "",
        "changed:" if compared.changed else "nothing of engine, client, model and node differs",
        *(f"  {change_text(one, len(compared.found.cells))}" for one in compared.changed),
    ]
    for metric in METRICS:
        rows = [row for row in compared.rows if row["metric"] == metric]
        better = "less" if less_is_better(metric) else "more"
        lines += ["", f"{metric} ({better} is better)", *_table(rows, base.label, other.label)]
    if said := list(remarks(compared.rows)):
        lines += ["", *said]
    if apart := list(left_alone(compared)):
        lines += ["", *apart]
    return "\n".join(clean(line) for line in [*lines, "", *statements(compared)])


def change_text(change: Change, cells: int) -> str:
    """Return a fact that differs, in a line."""
    where = "" if len(change.cells) == cells else f"  ({', '.join(change.cells)})"
    return f"{change.fact}: {change.base} -> {change.other}{where}"


def remarks(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield notes and warnings, each with the point that it is about."""
    for row in rows:
        for text in (row["note"], row["warning"]):
            if text:
                yield f"{row['cell']}, {row['metric']} at {load_text(row)}: {text}"


def left_alone(compared: Compared) -> Iterator[str]:
    """Yield what is not compared, and why."""
    found, labels = compared.found, (compared.base.label, compared.other.label)
    for label, cells in zip(labels, found.cells_only, strict=True):
        if cells:
            yield f"cells only in {label}: {', '.join(cells)}"
    for label, loads in zip(labels, found.loads_only, strict=True):
        if loads:
            yield f"load points only in {label}: {', '.join(loads)}"
    for line in found.unlike:
        yield f"not compared: {line}"
    for arm, label in zip(("base", "other"), labels, strict=True):
        for metric in METRICS:
            rows = [row for row in compared.rows if row["metric"] == metric]
            if count := sum(row[f"{arm}_left_out"] for row in rows):
                yield f"left out of {label}, {metric}: {count} missing, failed or barred by flags"


def statements(compared: Compared) -> Iterator[str]:
    """Yield what a reader must know of all verdicts."""
    yield APART
    judged = [row for row in compared.rows if row["p"] is not None]
    if judged:
        count = len({(row["cell"], row["metric"]) for row in judged})
        yield (
            "Welch intervals over launches. Each cell and metric is a comparison of its own, with "
            f"about 5 % at most for any false better or worse; here are {count}."
        )
    else:
        yield "Without three launches of a cell in each campaign there is no verdict on it."


def load_text(row: dict[str, Any]) -> str:
    """Return what is offered; with its lengths, which tell loads of one concurrency apart."""
    at = offered(row["concurrency"], row["request_rate"])
    return f"{at} ({row['load_id'].partition('-')[2]})"


def launches_text(row: dict[str, Any]) -> str:
    return f"{row['base_launches']}/{row['other_launches']}"


def value_text(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}"


def _table(rows: Sequence[dict[str, Any]], base: str, other: str) -> Iterator[str]:
    head = ("cell", "load", base, other, "change", "interval", "verdict", "launches")
    cells = [
        (
            row["cell"],
            load_text(row),
            value_text(row["base_mean"]),
            value_text(row["other_mean"]),
            effect_text(row),
            interval_text(row),
            row["verdict_text"],
            launches_text(row),
        )
        for row in rows
    ]
    widths = [max(len(line[i]) for line in [head, *cells]) for i in range(len(head))]
    for line in [head, *cells]:
        yield "  ".join(
            text.ljust(width) if i in _TEXT_COLUMNS else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
