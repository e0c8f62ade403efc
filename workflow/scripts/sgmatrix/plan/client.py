"""Which of SGLang's load clients a campaign uses: one, pinned, the same for all cells."""

from __future__ import annotations

from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan.engines import Installation
from sgmatrix.plan.load_parts import Load
from sgmatrix.plan.model import ModelFacts

PYTHON_STREAMS = 128
"""Requests in flight up to which the Python client is trusted: at 64 all its times were right
within the goals of docs/accuracy.md, at 256 its TTFT was late by 131 ms."""


def not_covered_by_rust(load: Load) -> str | None:
    """Return what of a load SGLang's Rust client does not offer; None where it covers it."""
    if load.dataset != "random-ids":
        return f"dataset {load.dataset}"
    if load.request_rate and load.burstiness != 1:
        return "burstiness other than 1"
    return None


def client_facts(load: Load, engine: Installation, model: ModelFacts) -> dict[str, Any]:
    """Return the load client of a campaign, as `plan.json` keeps it.

    Raises:
        SgmatrixError: `client_setup` when the client that is asked for cannot be used.
    """
    kind = load.client.kind
    missing = not_covered_by_rust(load)
    if kind == "auto":
        kind = "rust" if engine.client_extension and missing is None else "python"
    if kind == "rust" and engine.client_extension is None:
        raise SgmatrixError(
            "client_setup",
            f"engines.{engine.name} has no Rust load client",
            fix="set load.client to auto or python",
        )
    if kind == "rust" and missing is not None:
        raise SgmatrixError(
            "client_setup",
            f"the Rust load client does not offer {missing}",
            fix="set load.client to auto or python",
        )
    return {
        "id": f"sglang-{kind} {engine.version}",
        "kind": kind,
        "python": engine.python,
        "env": dict(engine.env),
        "extension": engine.client_extension,
        "vocab_size": model.vocab_size,
    }
