"""What the figures hold beside the cells: references of the same lengths, and near ceilings."""

from typing import Any

import pytest

from ceiling_facts import CONFIG
from sgmatrix.core.facts.references import read_reference
from sgmatrix.present.cells import cell_view
from sgmatrix.present.figures import charts as module
from sgmatrix.present.figures.curves import Curve, draw
from sgmatrix.present.figures.levers import share_out

REFERENCE = read_reference(CONFIG / "reference", "glm5-nvfp4-8xrtxpro6000").record()


def row(concurrency: int, rate: float, **values: Any) -> dict[str, Any]:
    lengths = {"dataset": "random-ids", "input_len": 256, "output_len": 128}
    said = {"status": "ok", "current": True, "validity": "valid", "launch": "1", "reason": None}
    own = {"output_tok_s": rate, "tpot_ms_mean": 20.0, "request_rate": None}
    return {"cell": "base", "concurrency": concurrency, **lengths, **said, **own, **values}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Curve]]:
    """What was to be drawn, by the label of its axis."""
    curves: dict[str, list[Curve]] = {}

    def keep(given: list[Curve], *, ylabel: str, **_: Any) -> str:
        curves[ylabel.partition(" (")[0]] = list(given)
        return ""

    monkeypatch.setattr(module, "draw", keep)
    return curves


def draw_charts(rows: list[dict[str, Any]], references: list[Any]) -> None:
    cells = [cell_view("base", rows, [])]
    shared = share_out(cells, {"base": {"parallelism": "tp1"}})
    module.charts(cells, rows, {"references": references}, shared)


def test_series_of_a_reference_are_drawn_where_the_lengths_are_the_same(
    drawn: dict[str, list[Curve]],
) -> None:
    draw_charts([row(1, 10.0), row(256, 700.0)], [REFERENCE])
    told = [curve for curve in drawn["output throughput"] if curve.kind == "reference"]
    assert [(mark.x, mark.y) for mark in told[-2].marks] == [
        (1, 10.0),
        (256, 705.0),
        (512, 1120.0),
        (1024, 1630.0),
        (2048, 2095.0),
    ]
    # a range and a blank are no marks
    assert all(mark.y > 0 for curve in told for mark in curve.marks)
    other = [row(1, 10.0, input_len=128), row(256, 700.0, input_len=128)]
    draw_charts(other, [REFERENCE])
    assert [curve.kind for curve in drawn["output throughput"]] == ["cell"]


@pytest.mark.parametrize(("ceiling", "kinds"), [(399.0, ["ceiling", "cell"]), (401.0, ["cell"])])
def test_a_ceiling_far_above_would_press_the_rest_to_the_ground(
    drawn: dict[str, list[Curve]], ceiling: float, kinds: list[str]
) -> None:
    rows = [
        row(1, 10.0, ceiling_practical_tok_s=50.0, ceiling_practical_tpot_ms=9.0),
        row(8, 100.0, ceiling_practical_tok_s=ceiling, ceiling_practical_tpot_ms=15.0),
    ]
    draw_charts(rows, [])
    assert [curve.kind for curve in drawn["output throughput"]] == kinds
    (below, _) = drawn["mean TPOT"]
    assert [(mark.x, mark.y) for mark in below.marks] == [(1, 9.0), (8, 15.0)]


def test_the_legend_names_what_is_not_a_cell() -> None:
    rows = [row(1, 10.0, ceiling_practical_tok_s=50.0)]
    entries = module.other_entries(rows, {"references": [REFERENCE]})
    assert [(entry.label, entry.note) for entry in entries] == [
        ("reference campaign", "reference, not measured here"),
        ("practical ceiling", "of the base; not drawn where it is far above"),
    ]
    assert module.other_entries([row(1, 10.0)], {}) == []


def test_they_look_other_than_a_cell() -> None:
    def svg(kind: Any) -> str:
        mark = module.Mark(8, 10.0, 10.0, 10.0, barred=False)
        far = module.Mark(16, 12.0, 12.0, 12.0, barred=False)
        return draw([Curve("#3b82f6", False, (mark, far), kind)], ylabel="y")

    pictures = {kind: svg(kind) for kind in ("cell", "reference", "ceiling")}
    assert len(set(pictures.values())) == 3
    assert "stroke-dasharray" in pictures["reference"]
    assert "stroke-dasharray" not in pictures["cell"]
