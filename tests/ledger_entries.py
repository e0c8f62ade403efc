"""Ledger entries that tests are made of."""

from __future__ import annotations

from typing import Any

from sgmatrix.plan.ledger import Entry


def entry_data(**changes: Any) -> dict[str, Any]:
    """Return an entry as a ledger's file holds it; keys replaced."""
    data: dict[str, Any] = {
        "id": "tp2-slower",
        "status": "ruled_out",
        "claim": "TP2 is faster than TP1.",
        "conditions": {
            "model": "tiny-qwen3-moe",
            "hardware": "Xeon",
            "engine_version": "0.5.23+standin",
            "load": "random prompts, concurrency 2",
        },
        "applies_to": {"parallelism": "tp2"},
        "evidence": [{"reference": "notes.txt", "section": "Section 2"}],
        "effect": {"text": "half as fast"},
        "date": "2026-11-20",
    }
    return {**data, **changes}


def entry(**changes: Any) -> Entry:
    """Return that entry, validated."""
    return Entry.model_validate(entry_data(**changes))
