"""The front of throughput per GPU against speed for one user."""

from drawn_cells import view
from sgmatrix.present.figures.charts import charts
from sgmatrix.present.figures.curves import Mark
from sgmatrix.present.figures.levers import share_out
from sgmatrix.present.figures.pareto import front


def mark(x, y, *, barred=False):
    return Mark(x, y, y, y, barred)


def test_the_front_has_what_no_other_beats_in_both():
    marks = [mark(10, 50), mark(20, 40), mark(15, 30), mark(5, 50), mark(20, 35), mark(8, 60)]

    assert [(one.x, one.y) for one in front(marks)] == [(8, 60), (10, 50), (20, 40)]


def test_a_barred_mark_is_never_on_the_front():
    assert front([mark(10, 50), mark(90, 90, barred=True)]) == [mark(10, 50)]
    assert front([mark(90, 90, barred=True)]) == []


def of(cells):
    axes = {cell.cell: {"parallelism": cell.cell} for cell in cells}
    return charts(cells, [], {}, share_out(cells, axes))[0].pareto


def test_the_page_names_the_cells_of_the_front_from_the_most_throughput_on():
    pareto = of([view("tp1", {1: 100.0, 8: 400.0}), view("tp2", {1: 80.0, 8: 600.0})])

    assert [(one.cell, one.at, one.per_user, one.per_gpu) for one in pareto.front] == [
        ("tp2", "8", 75.0, 600.0),
        ("tp1", "1", 100.0, 100.0),
    ]
    assert pareto.per == "server"
    assert "tp2 at concurrency 8: 600 tok/s per server, 75 tok/s for one user" in pareto.chart.alt


def test_with_gpus_it_is_throughput_per_gpu():
    cells = [view("tp2", {8: 600.0}, output_tok_s_per_gpu=300.0, gpus=2)]

    (best,) = of(cells).front
    assert (best.per_gpu, of(cells).per) == (300.0, "GPU")
    assert ">output throughput (tok/s per GPU)<" in of(cells).chart.svg


def test_a_campaign_without_tpot_has_none():
    assert of([view("tp1", {8: 600.0}, tpot_ms_mean=None)]) is None
