"""The matrix with its changes, blanks, failures and doubts."""

from drawn_cells import point, view
from sgmatrix.present.cells import cell_view
from sgmatrix.present.report.heat import Field, against_base, levers


def table(**cells):
    """Return the fields of each cell after the base, from (status, rate, validity) by load."""
    rows = []
    for cell, loads in cells.items():
        for at, (rate, values) in loads.items():
            rows.append(point(cell, at, rate, **values))
    views = [cell_view(cell, [row for row in rows if row["cell"] == cell], []) for cell in cells]
    (heat,) = against_base(views, rows)
    return heat, dict(heat.rows)


def test_each_number_stands_beside_the_base_at_the_same_load():
    heat, rows = table(
        base={1: (100.0, {}), 8: (200.0, {})}, other={1: (125.0, {}), 8: (190.0, {})}
    )

    assert (heat.title, heat.corner, heat.columns) == (
        "random-ids prompts, 16 tokens in, 4 tokens out",
        "cell \\ concurrency",
        ("1", "8"),
    )
    assert rows["base"] == (Field("100", "level"), Field("200", "level"))
    assert rows["other"] == (
        Field("125", "better", 0.55, "+25.0 %"),  # ln 1.25 / ln 1.5
        Field("190", "worse", 0.13, "-5.0 %"),
    )


def test_a_change_by_half_has_the_full_shade_and_more_has_no_more():
    _, rows = table(base={1: (100.0, {})}, half={1: (150.0, {})}, more={1: (900.0, {})})

    assert [rows[name][0].strength for name in ("half", "more")] == [1.0, 1.0]


def test_what_was_not_measured_is_blank_and_says_why():
    failed = {"status": "failed", "reason": "oom_runtime", "validity": None}
    skipped = {"status": "skipped", "reason": "oom_runtime", "validity": None}
    waits = {"status": "not_run", "validity": None}
    _, rows = table(
        base={1: (100.0, {}), 2: (100.0, {}), 4: (100.0, {}), 8: (100.0, {})},
        other={1: (None, failed), 2: (None, skipped), 4: (None, waits)},
    )

    assert rows["other"] == (
        Field("failed", "failed", note="oom_runtime"),
        Field("", "failed", note="oom_runtime"),
        Field("", "blank", note="not run"),
        Field("", "blank", note="not planned"),
    )


def test_a_flagged_number_is_shown_and_not_compared():
    _, rows = table(
        base={1: (100.0, {}), 2: (100.0, {"validity": "partial"})},
        other={1: (120.0, {"validity": "cold,partial"}), 2: (130.0, {})},
    )

    assert rows["other"] == (
        Field("120", "barred", note="cold,partial"),
        Field("130", "level"),  # the base is barred there
    )


def test_two_levers_make_a_table_and_the_others_one_each():
    rates = {("tp1", "a"): 100.0, ("tp2", "a"): 200.0, ("tp1", "b"): 110.0, ("tp2", "b"): 210.0}
    cells, axes = [], {}
    for (tp, chunk), rate in rates.items():
        for mem in ("0.8", "0.9"):
            name = f"{tp}-{chunk}-{mem}"
            cells.append(view(name, {8: rate + (mem == "0.9")}))
            axes[name] = {"parallelism": tp, "chunk": chunk, "mem_fraction": mem}
    first, second = levers(cells, axes)

    assert (first.title, first.corner, first.columns) == (
        "mem_fraction = 0.8",
        "parallelism \\ chunk",
        ("a", "b"),
    )
    assert second.title == "mem_fraction = 0.9"
    assert [(name, [one.text for one in row]) for name, row in first.rows] == [
        ("tp1", ["100", "110"]),
        ("tp2", ["200", "210"]),
    ]
    assert second.rows[1][1][1] == Field("211", "more", 1.0, "at 8")


def test_one_lever_or_a_matrix_that_is_mostly_empty_makes_none():
    cells = [view(f"tp{n}", {8: 100.0 + n}) for n in (1, 2, 4)]
    assert levers(cells, {cell.cell: {"parallelism": cell.cell} for cell in cells}) == []
    sparse = {cell.cell: {"a": cell.cell, "b": cell.cell} for cell in cells}
    assert levers(cells, sparse) == []
