"""What a repeated cell tells."""

import pytest

from builders import PROJECT, campaign
from finished import Finished
from sgmatrix.core.files import read_json
from sgmatrix.plan.plan import make_plan
from sgmatrix.present.differences import differences
from sgmatrix.present.repeat import agreement_lines, store_agreements


@pytest.mark.parametrize(
    ("then", "now", "lines"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["a: 1 then, 2 now"]),
        ({"node": {"kernel": "6.1", "cores": 8}}, {"node": {"kernel": "6.2", "cores": 8}},
         ["node.kernel: 6.1 then, 6.2 now"]),
        ({}, {"driver": "580"}, ["driver: not there then, 580 now"]),
        ({"b": 1, "a": 1}, {}, ["a: 1 then, not there now", "b: 1 then, not there now"]),
    ],
)  # fmt: skip
def test_differences_are_named_by_their_path(then, now, lines):
    assert list(differences(then, now)) == lines


def test_the_table_is_stored_with_both_attempts_and_printed(tmp_path):
    history = Finished(tmp_path, campaign())
    history.measured("tp1", rates={1: 64, 2: 100})
    history.measured("tp1", rates={1: 64, 2: 110})

    tables = store_agreements(history.layout, make_plan(history.campaign, history.layout, PROJECT))

    stored = read_json(history.layout.launch("tp1", "1") / "agreement.json")
    assert stored["attempts"] == {"old": 1, "new": 2}
    (repeated,) = tables
    assert (repeated.cell, repeated.launch, repeated.old, repeated.new) == ("tp1", "1", 1, 2)
    table = repeated.points
    at_2 = next(
        one for one in table if one.metric == "output_tok_s" and one.load_id.startswith("c0002")
    )
    assert (at_2.old, at_2.new) == (100, 110)
    assert stored["points"][0]["verdict"] == "unknown"
    lines = agreement_lines(table)
    assert lines[0].split() == ["load", "point", "metric", "before", "now", "change", "noise"]
    assert any("100.00" in line and "+10.0 %" in line and "n=1" in line for line in lines)


def test_a_cell_that_was_measured_once_has_no_table(tmp_path):
    history = Finished(tmp_path, campaign())
    history.measured("tp1", rates={1: 64, 2: 100})

    assert (
        store_agreements(history.layout, make_plan(history.campaign, history.layout, PROJECT)) == []
    )
