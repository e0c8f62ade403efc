"""What the report's first lines say where cells are measured at several kinds of load."""

import re
from types import SimpleNamespace

import pytest

from builders import campaign, client_line
from compared import Compared, pair
from finished import Finished
from sgmatrix.dataset.figures import LoadPoint
from sgmatrix.present.ceilings import CeilingsSection, CeilingView
from sgmatrix.present.report import render

TWO = {"parallelism": ["tp1", "tp2"]}


def text_of(html):
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def page(history):
    return render(history.layout, history.collect())[0]


@pytest.fixture
def lengths(tmp_path):
    """Two cells at concurrency 8, of which each is the faster one with other lengths."""
    load = {"concurrency": [8], "input_len": 16, "output_len": 4}
    load["also"] = [{"input_len": 64, "output_len": 8}]
    told = Finished(tmp_path, campaign(axes=TWO, load=load))
    for cell, rates in (("tp1", {16: 1000, 64: 800}), ("tp2", {16: 500, 64: 1100})):
        (planned,) = [one["points"] for one in told.plan["launches"] if one["cell"] == cell]
        folder = told.attempt(
            cell,
            lines={
                one["load_id"]: client_line(
                    one["requests"],
                    tokens=one["output_len"],
                    input_len=one["input_len"],
                    duration_s=one["requests"] * one["output_len"] / rates[one["input_len"]],
                )
                for one in planned
            },
        )
        told._finish(folder, reason=None, detail=None, closed={}, log="")
    return text_of(page(told))


def test_the_best_stands_beside_the_base_with_the_same_lengths(lengths):
    # 1100 / 800, and not 1100 / 1000, which is the base's best with other lengths
    assert "against the base +37.5 %" in lengths
    assert "tp1: 800 tok/s at 8" in lengths


def test_the_headline_names_the_lengths_where_there_are_several(lengths):
    assert (
        "tp2 has the highest throughput: 1,100 tok/s at concurrency 8, 64 tokens in, 8 out."
    ) in lengths
    assert "mean TPOT at concurrency 8, 16 tokens in, 4 out" in lengths


@pytest.mark.parametrize(
    ("workload", "concurrency", "rate", "want"),
    [
        (("random-ids", 16, 4), 8, None, "short"),
        (("random-ids", 64, 8), 8, None, "long"),
        (("random-ids", 16, 4), None, 5.0, "fast"),
        (("random-ids", 16, 4), None, 2.0, None),
        (("random-ids", 64, 8), 1, None, None),
    ],
)
def test_a_ceiling_is_found_by_all_that_is_offered(workload, concurrency, rate, want):
    def view(name, workload, concurrency, rate):
        names = ("dataset", "input_len", "output_len")
        row = dict(zip(names, workload, strict=True), cell="tp1", concurrency=concurrency)
        return CeilingView({**row, "request_rate": rate}, {"name": name}, None)

    section = CeilingsSection(
        "",
        None,
        (
            view("fast", ("random-ids", 16, 4), None, 5.0),
            view("long", ("random-ids", 64, 8), 8, None),
            view("short", ("random-ids", 16, 4), 8, None),
        ),
    )
    found = section.at("tp1", LoadPoint(workload, concurrency, rate, None, None))

    assert (found.ceiling["name"] if found else None) == want
    load = SimpleNamespace(key=(("random-ids", 16, 4), "8"))
    assert section.at("tp2", load) is None


def test_a_comparison_whose_variant_is_the_base_says_who_is_worse(tmp_path):
    axes = {"max_running_requests": [4, 8]}
    base, other = "max-running-requests-4", "max-running-requests-8"
    what = pair({"max_running_requests": 8}, {"max_running_requests": 4})
    told = Compared(tmp_path, campaign(axes=axes, compare=[what]))
    for number, tpot_ms in enumerate((20.0, 20.1, 19.9)):
        planned = told.plan["comparisons"][0]["rounds"][number]
        told.measured(other, planned["baseline"], rates={1: 64, 2: 125}, itl_s=tpot_ms / 2e3)
        told.measured(base, planned["variant"], rates={1: 64, 2: 100}, itl_s=tpot_ms / 1e3)
    told.skip_rest()

    text = text_of(told.page())

    assert (
        f"+25.0 % tpot_ms_mean, by pairs of launches: {base} is worse than {other} ( pair )"
    ) in text


def test_a_campaign_of_the_open_loop_alone_has_no_way_to_figures(tmp_path):
    load = {"request_rate": [1.5, 4], "input_len": 16, "output_len": 4}
    told = Finished(tmp_path, campaign(axes=TWO, load=load))
    for cell in told.cells:
        told._finish(told.attempt(cell), reason=None, detail=None, closed={}, log="")

    html = page(told)

    assert set(re.findall(r'href="#([^"]*)"', html)) <= set(re.findall(r'\sid="([^"]*)"', html))
    assert "All measured load points are of the open loop" in html


def test_a_throughput_below_zero_is_shown_and_has_no_change(tmp_path):
    told = Finished(tmp_path, campaign(axes=TWO))
    told.measured("tp1", rates={1: 64, 2: 120})
    told.change_point(told.measured("tp2", rates={1: 64, 2: 120}), 2, output_tok_s=-5.0)

    assert '<td class="level">-5.00</td>' in page(told)


def test_where_the_base_died_the_headline_says_which_points_are_meant(tmp_path):
    told = Finished(tmp_path, campaign(axes=TWO))
    told.died("tp1", root="x", rates={1: 50})
    told.measured("tp2", rates={1: 60, 2: 120})

    text = text_of(page(told))

    # 120 at concurrency 2 stands in the tables: the base has nothing there to compare with
    assert (
        "tp2 has the highest throughput of the load points that the base finished: 60.0 tok/s"
    ) in text
    assert "against the base +20.0 %" in text
