"""The table of the cells on the terminal."""

import io

from builders import campaign
from finished import Finished
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.points import point_rows
from sgmatrix.present.summary import HEAD, cell_lines, print_summary


def lines_of(history):
    rows, _ = point_rows(history.layout)
    return {line[0]: dict(zip(HEAD, line, strict=True)) for line in cell_lines(rows, history.plan)}


def test_a_cell_is_one_line_with_its_best_point(written):
    assert lines_of(written)["tp2"] == {
        "cell": "tp2",
        "status": "ok",
        "points": "2/2",
        "tok/s": "125",
        "at": "2",
        "TPOT ms": "1.00",
        "at 1": "1.00",
        "flags": "",
    }


def test_a_failed_cell_shows_its_reason_and_what_it_measured_before(written):
    line = lines_of(written)["tp4"]

    assert (line["status"], line["points"], line["tok/s"]) == ("server_crash", "1/2", "400")


def test_a_cell_without_a_point_has_blanks_and_no_0(tmp_path):
    history = Finished(tmp_path, campaign(axes={"parallelism": ["tp1", "tp2"]}))
    history.rejected("tp1", root="error: unrecognized arguments")
    lines = lines_of(history)

    assert list(lines["tp1"].values()) == ["tp1", "config_rejected", "0/2", "", "", "", "", ""]
    assert list(lines["tp2"].values()) == ["tp2", "not run", "0/2", "", "", "", "", ""]


def test_flags_stand_at_the_end_of_the_line(tmp_path):
    history = Finished(tmp_path, campaign())
    history.measured("tp1", rates={1: 64, 2: 100}, validity={1: "partial"})

    assert lines_of(history)["tp1"]["flags"] == "partial"


def test_a_superseded_attempt_does_not_count(told):
    told.measured("tp4", rates={1: 70, 2: 110})

    assert lines_of(told)["tp4"]["points"] == "2/2"


def test_the_printed_table_is_aligned_and_says_where_everything_is(told):
    out = io.StringIO()
    (told.layout.root / "report").mkdir(exist_ok=True)
    (told.layout.root / "report/index.html").write_text("")
    (told.layout.root.parent / "mlflow.db").write_text("")
    print_summary(told.layout, out)
    text = out.getvalue()
    table = text.strip("\n").split("\n\n")[-1].splitlines()

    assert table[0].split() == [
        "cell",
        "status",
        "points",
        "tok/s",
        "at",
        "TPOT",
        "ms",
        "at",
        "1",
        "flags",
    ]
    assert [line.index("/2") for line in table[1:]] == [table[1].index("/2")] * 3
    assert f"report  {told.layout.root}/report/index.html" in text
    assert f"MLflow  {told.layout.root.parent}/mlflow.db" in text


def test_without_a_plan_there_is_nothing_to_say(tmp_path):
    out = io.StringIO()
    print_summary(Layout(tmp_path), out)

    assert out.getvalue() == ""
