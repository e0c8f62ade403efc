"""The ledger as people read it: warnings in the plan, a section of the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgmatrix.analysis.ledger.concern import Finding
from sgmatrix.analysis.ledger.retest import engine_text, hardware_text
from sgmatrix.plan.ledger import Conditions, Effect, Entry, Evidence

_MOST_CELLS = 4


def warning_lines(findings: Iterable[Finding]) -> list[str]:
    """Return a line for each claim that is ruled out and that cells repeat."""
    return [
        f"ledger: {one.entry.id}, ruled out: {_cells_text(one.cells)}; "
        f"{effect_text(one.entry.effect)} ({conditions_text(one.entry.conditions)})"
        + (f"; to be retested: {', '.join(one.retest)}" if one.retest else "")
        for one in findings
        if one.cells and one.entry.status == "ruled_out"
    ]


def _cells_text(cells: Sequence[str]) -> str:
    more = len(cells) - _MOST_CELLS
    named = ", ".join(cells[:_MOST_CELLS])
    return f"cell{'s' if len(cells) > 1 else ''} {named}" + (
        f" and {more} more" if more > 0 else ""
    )


def effect_text(effect: Effect) -> str:
    """Return an effect in words, with its number and interval where there are some."""
    if effect.percent is None:
        return effect.text
    number = f"{effect.metric} {effect.percent:+g} %"
    if effect.low_percent is not None:
        number += f", {effect.low_percent:+g} to {effect.high_percent:+g} %"
    return f"{effect.text} ({number})"


def conditions_text(found: Conditions) -> str:
    """Return where something was found."""
    parts = (
        found.model,
        hardware_text(found),
        engine_text(found) or "no engine version told",
        found.load,
    )
    return "; ".join(part for part in parts if part)


def evidence_text(evidence: Evidence) -> str:
    """Return one piece of evidence, as a reader would look it up."""
    if evidence.key is not None:
        return f"{evidence.campaign}, cell {evidence.cell}, key {evidence.key[:12]}"
    return ", ".join(text for text in (evidence.reference, evidence.section) if text)


@dataclass(frozen=True)
class LedgerRow:
    """One finding in the report."""

    id: str
    status: str
    claim: str
    effect: str
    conditions: str
    evidence: tuple[str, ...]
    date: str
    note: str
    cells: tuple[str, ...]
    retest: tuple[str, ...]


def ledger_rows(plan: Mapping[str, Any]) -> list[LedgerRow]:
    """Return the findings that `plan.json` holds; those that cells repeat come first."""
    rows = []
    for record in plan.get("ledger", []):
        data = {name: value for name, value in record.items() if name not in ("cells", "retest")}
        entry = Entry.model_validate(data)
        rows.append(
            LedgerRow(
                id=entry.id,
                status=entry.status.replace("_", " "),
                claim=entry.claim,
                effect=effect_text(entry.effect),
                conditions=conditions_text(entry.conditions),
                evidence=tuple(evidence_text(one) for one in entry.evidence),
                date=entry.date,
                note=entry.note or "",
                cells=tuple(record["cells"]),
                retest=tuple(record["retest"]),
            )
        )
    return sorted(rows, key=lambda row: not row.cells)
