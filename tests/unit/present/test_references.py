"""References and advice beside own results: blanks stay blank, own values are trusted ones."""

from typing import Any

from ceiling_facts import CONFIG
from sgmatrix.core.facts.references import read_reference
from sgmatrix.present.advice_view import advice_views
from sgmatrix.present.references import reference_views


def row(cell: str = "a", **values: Any) -> dict[str, Any]:
    said = {"status": "ok", "current": True, "validity": "valid", "concurrency": 256}
    own = {"output_tok_s": 100.0, "total_tok_s": 300.0, "tpot_ms_mean": 20.0}
    return {"cell": cell, **said, **own, **values}


def references(rows: list[dict[str, Any]]) -> Any:
    known = read_reference(CONFIG / "reference", "glm5-nvfp4-8xrtxpro6000")
    (view,) = reference_views({"references": [known.record()]}, rows)
    return view


def test_its_table_with_blanks_ranges_and_conditions() -> None:
    view = references([])
    rows = {(one.series, one.concurrency): one for one in view.rows}
    assert rows["a1-after", 128].values == {"total_tok_s": ""}
    assert rows["a1-after", 1].values == {"output_tok_s": "8-11 (range)"}
    assert rows["a3-best", 2048].values == {
        "output_tok_s": "2095",
        "total_tok_s": "4151",
        "tpot_ms": "815",
    }
    assert rows["a1-before", 64].source.endswith(".txt line 23")
    assert all(one.own == {} for one in view.rows)
    assert "whether CUDA graphs were on is not said" in view.conditions
    assert any("TDP: 300 W" in text for text in view.contradictions)


def test_the_best_trusted_own_values_stand_beside() -> None:
    rows = [
        row(),
        row(output_tok_s=120.0, tpot_ms_mean=25.0),
        row(output_tok_s=9e9, tpot_ms_mean=0.1, validity="implausible"),
        row(output_tok_s=500.0, concurrency=64),
        row(output_tok_s=700.0, status="failed"),
    ]
    own = {one.concurrency: one.own for one in references(rows).rows}
    assert own[256] == {"output_tok_s": 120.0, "total_tok_s": 300.0, "tpot_ms": 20.0}
    assert own[64] == {"output_tok_s": 500.0, "total_tok_s": 300.0, "tpot_ms": 20.0}
    assert own[512] == {}


def advice(topic: str, cells: list[str], rows: list[dict[str, Any]]) -> str:
    said = {"topic": topic, "text": "t", "formula": "f", "cells": cells}
    plan = {"cells": {"base": {}, "a": {}, "b": {}}, "advice": [said]}
    (view,) = advice_views(plan, rows)
    return view.measured


def test_a_pool_as_the_server_reported_it() -> None:
    rows = [row(ceiling_kv_tokens=1000), row("b", ceiling_kv_tokens=2000)]
    assert advice("mem_fraction", ["a"], rows) == "a pool of 1,000 tokens"
    assert advice("mem_fraction", ["a", "b"], rows) == (
        "a: a pool of 1,000 tokens; b: a pool of 2,000 tokens"
    )
    assert advice("mem_fraction", ["a"], []) == ""


def test_how_many_ran_at_once() -> None:
    rows = [
        row(running_max=200, queued_max=0),
        row(running_max=527, queued_max=1500, concurrency=2048),
    ]
    assert advice("above_pool", ["a"], rows) == (
        "527 ran at once at concurrency 2,048, 1,500 waited"
    )


def test_tpot_against_the_base_is_no_verdict() -> None:
    rows = [
        row("base"),
        row("base", concurrency=8, tpot_ms_mean=10.0),
        row(tpot_ms_mean=19.0),
        row(concurrency=8, tpot_ms_mean=12.0),
        row(concurrency=8, tpot_ms_mean=1.0, validity="cold"),
        row(concurrency=1, tpot_ms_mean=1.0),
    ]
    assert advice("oea_bound", ["a"], rows) == (
        "TPOT +20.0 % at 8, -5.0 % at 256, no verdict by itself"
    )


def test_what_cannot_be_measured_is_blank() -> None:
    assert advice("claim", [], [row()]) == ""
    assert advice_views({"cells": {}}, []) == []
