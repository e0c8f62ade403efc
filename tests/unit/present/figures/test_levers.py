"""How many cells share colours and panels."""

import math
from itertools import product

from drawn_cells import view
from sgmatrix.present.figures.levers import influence, share_out
from sgmatrix.present.figures.palette import COLOURS, MUTED, PAGE


def matrix(**levers):
    """Return cells of all combinations: a throughput of the product of the values' factors."""
    cells, axes = [], {}
    for values in product(*(one.items() for one in levers.values())):
        name = "-".join(value for value, _ in values)
        rate = 100 * math.prod(factor for _, factor in values)
        cells.append(view(name, {1: 10.0, 8: rate}))
        axes[name] = dict(zip(levers, (value for value, _ in values), strict=True))
    return cells, axes


def test_few_cells_have_a_colour_and_a_shape_each_and_the_base_is_dashed():
    cells, axes = matrix(parallelism={"tp1": 1, "tp2": 1.5, "tp4": 2})
    shared = share_out(cells, axes)
    (panel,) = shared.panels

    looks = [(look.colour, look.marker, look.dashed) for look in panel.looks.values()]
    assert looks == [(PAGE, "o", True), (COLOURS[0], "o", False), (COLOURS[1], "s", False)]
    assert [(one.label, one.note, one.numbers) for one in shared.entries] == [
        ("tp1", "base", (0,)),
        ("tp2", "", (1,)),
        ("tp4", "", (2,)),
    ]


def test_of_many_the_strongest_lever_has_the_colours_and_the_next_the_panels():
    weak = {f"m{n}": 1 + n / 100 for n in range(3)}
    middle = {"c1": 1, "c2": 1.2, "c3": 1.3}
    strong = {"tp1": 1, "tp2": 1.9}
    cells, axes = matrix(mem_fraction=weak, chunk=middle, parallelism=strong)
    shared = share_out(cells, axes)

    assert round(math.exp(influence(cells, axes, "parallelism")), 6) == 1.9
    assert [panel.title for panel in shared.panels] == ["chunk = c1", "chunk = c2", "chunk = c3"]
    assert [(one.label, one.note, len(one.numbers)) for one in shared.entries] == [
        ("m0-c1-tp1", "base", 1),
        ("parallelism = tp1", "8 cells", 8),
        ("parallelism = tp2", "9 cells", 9),
    ]
    # the base is in every panel, beside the six cells of its own value
    assert [len(panel.looks) for panel in shared.panels] == [6, 7, 7]
    assert shared.panels[1].looks["m2-c2-tp2"].colour == COLOURS[1]


def test_levers_that_were_moved_alone_have_a_panel_each():
    cells, axes = [view("base", {8: 100.0})], {"base": {"a": "0", "b": "0"}}
    for axis, values in (("a", range(1, 5)), ("b", range(1, 10))):
        for value in values:
            name = f"{axis}{value}"
            cells.append(view(name, {8: 100.0 + value * (10 if axis == "b" else 1)}))
            axes[name] = {**axes["base"], axis: str(value)}
    shared = share_out(cells, axes)

    assert [panel.title for panel in shared.panels] == ["b", "a"]
    assert [one.label for one in shared.entries] == ["base"]
    first = shared.panels[0]
    assert [one.label for one in first.entries] == [*map(str, range(3, 10)), "2 more"]
    assert first.looks["b1"].colour == MUTED and first.looks["b9"].colour != MUTED
    assert [one.label for one in shared.panels[1].entries] == ["1", "2", "3", "4"]


def test_a_cell_without_a_point_is_not_drawn():
    cells, axes = matrix(parallelism={"tp1": 1, "tp2": 1.5})
    cells.append(view("tp4", {}))
    axes["tp4"] = {"parallelism": "tp4"}

    assert list(share_out(cells, axes).panels[0].looks) == ["tp1", "tp2"]
    assert share_out([cells[-1]], axes).panels == ()
