"""`snakemake ceiling`: the largest headroom first, measured beside it, what does not fit last."""

from typing import Any

import pytest

from ceiling_facts import GLM5, RTX
from sgmatrix.analysis.ceiling.campaign import matrix_ceilings
from sgmatrix.present.ceiling_view import best_measured, ceiling_text

BASE = {"tp_size": 8, "mem_fraction_static": 0.92}
CELLS: dict[str, dict[str, Any]] = {
    "tp8": BASE,
    "capped": {**BASE, "max_running_requests": 64},
    "tp4pp2": {**BASE, "tp_size": 4, "pp_size": 2},
    "tp4": {**BASE, "tp_size": 4},
}


def view(rows: list[dict[str, Any]]) -> list[list[str]]:
    points = [
        {"load_id": f"c{c}", "concurrency": c, "input_len": 256, "output_len": 128}
        for c in (1, 2048)
    ]
    record = {
        "cells": {name: {"id": name, "flags": flags} for name, flags in CELLS.items()},
        "launches": [{"cell": name, "points": points} for name in CELLS],
    }
    ceilings = matrix_ceilings(record, GLM5, RTX)
    text = ceiling_text(ceilings, rows, device="RTX", model="GLM-5", base="tp8")
    return [line.split() for line in text.splitlines()[4:]]


def row(cell: str, load: str, rate: float, validity: str = "valid") -> dict[str, Any]:
    said = {"current": True, "status": "ok", "validity": validity}
    return {"cell": cell, "load_id": load, "output_tok_s": rate, **said}


def test_the_largest_headroom_stands_first() -> None:
    lines = view([])
    assert [line[0] for line in lines] == ["tp4pp2", "tp8", "capped", "tp4"]
    assert lines[0][1:4] == ["1.77", "x", "c2048"]
    assert lines[1] == ["tp8", "1.00", "x", "c2048", "6,216", "3,210", "link", "7.31", "340,123"]
    assert lines[3] == ["tp4", "does", "not", "fit", "0"]


def test_the_pool_of_a_cell_is_that_of_all_its_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = next(line for line in view([]) if line[0] == "tp8")
    monkeypatch.setitem(CELLS, "tp8dp2", {**BASE, "dp_size": 2})
    both = next(line for line in view([]) if line[0] == "tp8dp2")
    assert (alone[-1], both[-1]) == ("340,123", "680,246")


def test_measured_values_stand_beside_and_set_the_headroom() -> None:
    lines = {line[0]: line for line in view([row("tp8", "c2048", 1600), row("tp8", "c1", 10)])}
    assert lines["tp8"][1:9] == ["2.01", "x", "c2048", "6,216", "3,210", "1,600", "50%", "link"]
    assert lines["capped"][1] == "0.77"


def test_only_trusted_current_points_are_measured() -> None:
    rows = [
        row("tp8", "c1", 10),
        row("tp8", "c1", 12),
        row("tp8", "c2048", 9e9, "implausible"),
        {**row("capped", "c1", 9e9), "current": False},
        {**row("capped", "c1", 9e9), "status": "failed"},
    ]
    assert best_measured(rows) == {"tp8": {"c1": 11.0}}
