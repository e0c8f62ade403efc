"""What a reader of the report sees, for campaigns of every shape."""

import base64
import csv
import hashlib
import os
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from builders import campaign
from finished import Finished
from sgmatrix.core.files import read_json, write_json
from sgmatrix.present.report import render, write_report
from sgmatrix.present.report.numbers import number

SCRIPTS = Path(__file__).parents[4] / "workflow" / "scripts"
TWO = {"parallelism": ["tp1", "tp2"]}
SCRIPT = "<script>document.title='taken over'</script>"


class Page(HTMLParser):
    """The text of a page, its tables as rows of cells, its tags and their attributes."""

    def __init__(self, html):
        super().__init__()
        self.tables, self.tags, self.links, self.parts = [], [], [], []
        self.names = []
        self.skip = self.cell = False
        self.feed(html)
        self.text = re.sub(r"\s+", " ", " ".join(self.parts))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [text for name, text in attrs if name in ("href", "src", "xlink:href")]
        if tag == "table":
            self.tables.append([])
            self.names.append(dict(attrs).get("class", "").split()[0])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.cell = True
        elif tag in ("br", "small"):
            self.handle_data(" ")
        self.skip = self.skip or tag in ("style", "script")

    def handle_endtag(self, tag):
        self.skip = self.skip and tag not in ("style", "script")
        self.cell = self.cell and tag not in ("td", "th")

    def handle_data(self, data):
        if self.skip:
            return
        self.parts.append(data)
        if self.cell:
            self.tables[-1][-1][-1] += data

    def table(self, name, which=0):
        """Return the rows of the tables of that class, by the texts of the head."""
        index = [place for place, one in enumerate(self.names) if one == name][which]
        head, *rows = [[" ".join(text.split()) for text in row] for row in self.tables[index]]
        return [dict(zip(head, row, strict=True)) for row in rows]


def page_of(history):
    html, _ = render(history.layout, history.collect())
    return Page(html)


@pytest.fixture(scope="module")
def html(written):
    return render(written.layout, written.points)[0]


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_the_headline_names_the_best_cell_against_the_base(page):
    assert "tp2 has the highest throughput: 125 tok/s at concurrency 2." in page.text
    assert "highest throughput 125 tok/s tp2 at concurrency 2; mean TPOT there 1.00" in page.text
    assert "tp2 answers one user quickest: 1.00 ms per token. 1 of 3 cells failed." in page.text
    assert "lowest latency 1.00 ms tp2 mean TPOT at concurrency 1, median TTFT 10.0" in page.text
    assert "not to be trusted 0 points no flag on any point" in page.text
    assert "against the base +25.0 % no verdict with one launch; tp1: 100 tok/s" in page.text
    assert "cells ok 2 of 3" in page.text


def test_a_cell_that_failed_is_never_the_best_whatever_it_measured_before(page):
    rows = {row["cell"]: row for row in page.table("cells")}

    assert rows["tp4"]["best tok/s"] == "400"
    assert "tp4 has the highest" not in page.text


def test_what_failed_stands_at_the_top_with_its_root_line(page, html):
    assert "Failed: 1 of 3 cells tp4 : server_crash AttributeError: 'ForwardMetadata'" in page.text
    assert html.index("Failed: 1 of 3") < html.index('id="curves"')
    (failure,) = page.table("failures")
    assert failure["reason"].startswith("server_crash the server died")
    assert failure["try"] == "try another attention back end"
    assert "line 100 of results/made-up/history/tp4/launch-1/1/server.log" in page.text


def test_the_table_of_cells_says_why_and_how_to_run_it_again(page):
    row = {row["cell"].split()[0]: row for row in page.table("cells")}["tp4"]

    assert row["status"].startswith("failed server_crash the server died; the root line")
    assert row["points ok"] == "1 of 2"
    assert row["ready after, s"] == "2.50"
    assert row["run it again"] == "snakemake --configfile results/made-up/cells/tp4/cell.yaml"


def test_one_launch_per_cell_gives_no_verdict_and_the_report_says_so(page):
    assert "One launch per cell" in page.text and "is no verdict" in page.text


def test_what_was_not_measured_stays_blank_and_is_never_0(page):
    row = page.table("points")[-1]
    measured = [name for name in row if name.endswith((" ms", "tok/s", " s"))]

    assert (row["cell"], row["conc."], row["status"]) == ("tp4", "2", "failed: server_crash")
    assert len(measured) == 9
    assert {name: row[name] for name in measured} == dict.fromkeys(measured, "")


def test_all_points_are_in_the_table_in_the_order_of_the_plan(page):
    rows = page.table("points")

    assert [(row["cell"], row["conc."]) for row in rows] == [
        (cell, load) for cell in ("tp1", "tp2", "tp4") for load in ("1", "2")
    ]
    assert rows[3]["output tok/s"] == "125" and rows[3]["ok / asked"] == "8 / 8"


def test_the_csv_has_every_row_all_digits_and_blanks(written):
    _, text = render(written.layout, written.points)
    rows = list(csv.DictReader(text.splitlines()))

    assert [row["output_tok_s"] for row in rows] == ["64.0", "100.0", "60.0", "125.0", "400.0", ""]
    assert rows[-1]["tpot_ms_mean"] == "" and rows[-1]["reason"] == "server_crash"
    assert rows[0]["axis_parallelism"] == "tp1" and rows[0]["current"] == "true"


def test_a_log_line_is_no_formula_in_a_spreadsheet(told):
    folder = told.layout.attempt("tp1", "1", 1)
    told.change_point(folder, 1, detail='=HYPERLINK("file:///etc/passwd")')
    told.change_point(folder, 2, detail="1 = 2")
    _, text = render(told.layout, told.collect())

    details = [row["detail"] for row in csv.DictReader(text.splitlines())][:2]
    assert details == ['\'=HYPERLINK("file:///etc/passwd")', "1 = 2"]


def test_the_page_needs_nothing_from_elsewhere_and_runs_its_own_script_alone(page, html):
    assert set(page.tags).isdisjoint({"link", "img", "iframe", "object"})
    assert all(link.startswith("#") or link == "points.csv" for link in page.links)
    assert "http" not in html.replace("http-equiv", "")
    (script,) = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; "
    assert unescape(html).count(f"{policy}script-src 'sha256-{digest}'") == 1


def test_the_figures_are_inline_have_units_and_the_measured_concurrencies(page, html):
    figures = re.findall(r"<figure.*?</figure>", html, flags=re.DOTALL)

    assert len(figures) == 4
    labels = ("output throughput (tok/s)", "mean TPOT (ms)", "median TTFT (ms)")
    assert [f">{label}<" in figure for label, figure in zip(labels, figures[1:], strict=True)] == [
        True
    ] * 3
    for figure in figures[1:]:
        assert ">concurrency (requests in flight)<" in figure
        ticks = re.findall(r"<text[^>]*>(\d+)</text>", figure)
        assert ticks[:2] == ["1", "2"]
    assert "tp1 (base)" in page.text and "tp4 (failed)" in page.text


def test_the_axis_is_marked_at_what_was_measured_and_nowhere_else(tmp_path):
    load = {"concurrency": [1, 3, 12], "input_len": 16, "output_len": 4}
    history = Finished(tmp_path, campaign(load=load))
    history.measured("tp1", rates={1: 5000, 3: 6000, 12: 7000})
    html, _ = render(history.layout, history.collect())
    curves = html[html.index('id="curves"') :]
    axis = curves[curves.index("<figure") : curves.index("concurrency (requests in flight)")]

    assert re.findall(r"<text[^>]*>(\d+)</text>", axis) == ["1", "3", "12"]


def test_a_barred_launch_does_not_count_in_the_mean_of_the_others(tmp_path):
    history = Finished(tmp_path, campaign(launches=2))
    history.measured("tp1", "1", rates={1: 64, 2: 100})
    history.measured("tp1", "2", rates={1: 64, 2: 300}, validity={2: "partial"})
    page = page_of(history)

    assert "tp1 has the highest throughput: 100 tok/s at concurrency 2" in page.text


def test_a_log_line_with_a_script_in_it_is_harmless(told):
    told.died("tp4", root=f"{SCRIPT} api_key='sk-1'", rates={1: 400})
    detail = f"{SCRIPT} api_key='sk-2'"
    told.change_point(told.layout.attempt("tp1", "1", 1), 2, detail=detail)
    html, _ = render(told.layout, told.collect())
    page = Page(html)

    assert page.tags.count("script") == 1  # our own
    assert html.count("&lt;script&gt;") >= 2
    assert SCRIPT in page.text  # readable all the same
    assert "sk-1" not in html and "sk-2" not in html


def test_the_same_records_give_the_same_bytes_in_another_process(written, tmp_path):
    files = [tmp_path / "index.html", tmp_path / "points.csv"]
    write_report(written.layout, written.points, html=files[0], csv=files[1])
    first = [file.read_bytes() for file in files]
    code = (
        "import sys; from pathlib import Path; from sgmatrix.core.layout import Layout; "
        "from sgmatrix.present.report import write_report; a = [Path(x) for x in sys.argv[1:]]; "
        "write_report(Layout(a[0]), a[1], html=a[2], csv=a[3])"
    )
    subprocess.run(
        [sys.executable, "-c", code, written.layout.root, written.points, *files],
        cwd=SCRIPTS,
        env={**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu", "LC_ALL": "C"},
        check=True,
    )

    assert [file.read_bytes() for file in files] == first


def test_a_flagged_point_is_shown_named_and_left_out_of_the_comparison(tmp_path):
    history = Finished(tmp_path, campaign(axes=TWO))
    history.measured("tp1", rates={1: 64, 2: 100})
    history.measured("tp2", rates={1: 70, 2: 900}, validity={2: "partial,cold"})
    page = page_of(history)

    assert "at concurrency 2, the base cell" in page.text
    assert "1 point left out of comparisons" in page.text
    assert "partial: not all requests succeeded; bars latency and throughput" in page.text
    assert "comparisons tp2 at concurrency 2" in page.text
    assert page.table("points")[3]["output tok/s"] == "900"
    assert {row["cell"]: row["best tok/s"] for row in page.table("cells")} == {
        "tp1 base": "100",
        "tp2": "70.0",
    }


def test_a_flag_says_why_it_was_given(tmp_path):
    history = Finished(tmp_path, campaign(axes=TWO))
    history.measured("tp1", rates={1: 64, 2: 100})
    folder = history.measured("tp2", rates={1: 70, 2: 900})
    detail = "cold: there was no warm-up | cache_hits: 9.0 % of <b>the</b> prompt tokens"
    history.change_point(folder, 2, validity="cold,cache_hits", validity_detail=detail)

    text = page_of(history).text
    assert "tp2 at concurrency 2 (there was no warm-up)" in text
    assert "tp2 at concurrency 2 (9.0 % of <b>the</b> prompt tokens)" in text  # as text, no markup


def test_open_loop_points_are_in_the_tables_and_not_on_the_curves(tmp_path):
    load = {"concurrency": [2], "request_rate": [0.5], "input_len": 16, "output_len": 4}
    history = Finished(tmp_path, campaign(load=load))
    folder = history.measured("tp1", rates={2: 64})
    path = folder / "points/r0.5-i16-o4-random-ids.json"
    write_json(path, read_json(path) | {"validity": "rate_limited", "output_tok_s": 9999.0})
    page = page_of(history)

    assert [row["conc."] for row in page.table("points")] == ["2", "0.5/s"]
    assert "rate_limited: the offered rate was the limit" in page.text
    assert "tp1 at 0.5/s" in page.text
    assert page.table("cells")[0]["best tok/s"] == "64.0"  # not that of a load that was the limit


def test_a_flag_that_bars_nothing_leaves_nothing_out(tmp_path):
    history = Finished(tmp_path, campaign(axes=TWO))
    history.measured("tp1", rates={1: 64, 2: 100})
    history.measured("tp2", rates={1: 70, 2: 900}, validity={2: "no_telemetry"})
    page = page_of(history)

    assert "tp2 has the highest" in page.text and "left out" not in page.text


def test_a_flag_of_a_later_version_bars_everything(tmp_path):
    history = Finished(tmp_path, campaign(axes=TWO))
    history.measured("tp1", rates={1: 64, 2: 100})
    history.measured("tp2", rates={1: 70, 2: 900}, validity={2: "from_the_future"})

    assert "at concurrency 2, the base cell" in page_of(history).text


def test_several_launches_are_a_mean_and_their_spread_is_told(tmp_path):
    history = Finished(tmp_path, campaign(axes=TWO, launches=2))
    for launch, rates in (("1", (99, 101)), ("2", (101, 102))):
        history.measured("tp1", launch, rates={1: 64, 2: rates[0]})
        history.measured("tp2", launch, rates={1: 64, 2: rates[1]})
    page = page_of(history)

    assert "2 launches per cell; numbers are means over launches" in page.text
    assert "differ by up to 2.0 % at its best point" in page.text  # (101 - 99) / 100
    assert "fewer than three launches that spread itself is a guess" in page.text
    assert "against the base +1.5 % less than launches of one cell differ" in page.text


def test_launches_that_failed_alike_are_told_once_and_do_not_count_in_the_spread(tmp_path):
    history = Finished(tmp_path, campaign(axes=TWO, launches=4))
    for launch in ("1", "2", "3", "4"):
        history.measured("tp1", launch, rates={1: 64, 2: 100})
    for launch in ("1", "2"):
        history.rejected("tp2", launch, root="error: unrecognized arguments")
    history.measured("tp2", "3", rates={1: 64, 2: 70})
    history.measured("tp2", "4", rates={1: 64, 2: 90})
    page = page_of(history)

    told = "Failed: 1 of 2 cells tp2 , launches 1, 2: config_rejected error: unrecognized"
    assert told in page.text
    assert "differ by up to 0.0 % at its best point" in page.text


def test_a_superseded_attempt_is_folded_away_and_counts_no_more(told):
    told.measured("tp4", rates={1: 70, 2: 110})
    html, _ = render(told.layout, told.collect())
    page = Page(html)

    assert "Failed:" not in page.text and "cells ok 3 of 3" in page.text
    assert re.search(r"<details><summary>2 points of earlier or interrupted attempts", html)
    assert [row["launch"] for row in page.table("points", 1)] == ["1 attempt 1"] * 2


def test_a_launch_that_was_repeated_stands_beside_its_attempt_before(told):
    told.measured("tp1", rates={1: 64, 2: 121})

    html, _ = render(told.layout, told.collect())

    assert "<summary>tp1: attempt 2 beside attempt 1</summary>" in html
    found = {
        (row["load point"].partition("-")[0], row["metric"]): row
        for row in Page(html).table("agreement")
    }
    assert len(found) == 2 * 3
    at_2 = found["c0002", "output_tok_s"]
    assert (at_2["before"], at_2["now"], at_2["change"]) == ("100", "121", "+21.0 %")
    assert (at_2["known noise"], at_2["verdict"]) == ("unknown, n=1", "unknown")


def test_a_campaign_of_which_all_cells_failed(tmp_path):
    history = Finished(tmp_path, campaign(axes=TWO))
    for cell in ("tp1", "tp2"):
        history.rejected(cell, root="error: unrecognized arguments: --no-such-flag 1")
    page = page_of(history)

    assert "best cell none" in page.text and "cells ok 0 of 2" in page.text
    assert "Failed: 2 of 2 cells" in page.text and "unrecognized arguments" in page.text
    assert "nothing to draw" in page.text and "figure" not in page.tags
    assert "base cell tp1 has no trusted point" not in page.text


def test_cells_are_compared_at_load_points_that_the_base_has_too(tmp_path):
    what = campaign(
        axes={"parallelism": ["tp1", "tp2", "tp4"]},
        overrides=[{"where": {"parallelism": "tp2"}, "load": {"concurrency": [2, 64]}}],
    )
    history = Finished(tmp_path, what)
    history.measured("tp1", rates={1: 50, 2: 100})
    history.measured("tp2", rates={2: 110, 64: 9000})
    history.measured("tp4", rates={1: 60, 2: 130})

    page = page_of(history)

    assert "tp4 has the highest throughput" in page.text
    assert "+30.0 %" in page.text


def test_what_is_no_longer_planned_is_no_current_point(tmp_path):
    history = Finished(tmp_path, campaign(axes={"parallelism": ["tp1", "tp2"]}))
    history.measured("tp1", rates={1: 50, 2: 100})
    history.measured("tp2", rates={1: 50, 2: 100})
    history.plan["launches"] = history.plan["launches"][:1]
    write_json(history.layout.plan, history.plan)

    page = page_of(history)

    assert "1 cells, 2 load points" in page.text
    assert "2 points of earlier or interrupted attempts, or no longer planned" in page.text


def test_a_file_that_was_not_read_is_named(told):
    (told.layout.attempt("tp2", "1", 1) / "teardown.json").write_text('{"status": "o')
    page = page_of(told)

    assert "1 file of the history was not read ( which )" in page.text
    assert "Not read: 1 file of the history history/tp2/launch-1/1/teardown.json " in page.text


def test_gpus_give_power_energy_and_throughput_per_gpu(tmp_path):
    history = Finished(tmp_path, campaign(axes=TWO))
    for cell, rate in (("tp1", 100.0), ("tp2", 150.0)):
        history.powered(history.measured(cell, rates={1: 64, 2: rate}), {0: 300.0, 1: 300.0})
    html, _ = render(history.layout, history.collect())

    assert ">mean GPU power (W)<" in html and ">energy (J per output token)<" in html
    assert "Highest: tp2 with 9.375 at concurrency 1; lowest: tp2 with 4 at concurrency 2." in html
    best = Page(html).table("front")[0]
    assert (best["cell"], best["tok/s per GPU"]) == ("tp2", "75.0")


def test_a_campaign_without_gpus_says_why_there_is_no_power(page):
    assert "No power was read: these cells use no GPU." in page.text


def test_a_base_that_failed_leaves_nothing_to_compare_with(tmp_path):
    history = Finished(tmp_path, campaign(axes=TWO))
    history.rejected("tp1", root="error: unrecognized arguments")
    history.measured("tp2", rates={1: 64, 2: 100})
    page = page_of(history)

    assert "tp2 has the highest" in page.text and "against the base +" not in page.text
    assert "The base cell tp1 has no trusted point to compare with." in page.text


def test_a_campaign_of_which_nothing_ran_yet(tmp_path):
    page = page_of(Finished(tmp_path, campaign(axes=TWO)))

    assert "Not run yet: 2 of 2 cells tp1, tp2" in page.text
    assert [row["status"] for row in page.table("points")] == ["not run"] * 4
    assert "0 failed, 2 not run" in page.text
    assert [row["run it again"] for row in page.table("cells")] == ["", ""]


def test_one_cell_at_one_concurrency(tmp_path):
    load = {"concurrency": [4], "input_len": 16, "output_len": 4}
    history = Finished(tmp_path, campaign(load=load))
    history.measured("tp1", rates={4: 64})
    page = page_of(history)

    assert "highest throughput 64.0 tok/s tp1 at concurrency 4, the base cell" in page.text
    assert page.tags.count("figure") == 4
    assert page.table("cells")[0]["TPOT at 1, ms"] == ""


def test_more_cells_than_colours_are_drawn_in_grey_and_counted(tmp_path):
    axes = {"mem_fraction": [round(0.1 + 0.05 * n, 2) for n in range(12)]}
    history = Finished(tmp_path, campaign(axes=axes))
    for n, cell in enumerate(history.cells):
        history.measured(cell, rates={1: 10 + n, 2: 20 + n})
    html, _ = render(history.layout, history.collect())
    page = Page(html)

    assert "4 more (named in the table)" in page.text  # 12 cells, the base and 7 colours
    assert f"{history.cells[-1]} has the highest" in page.text


def test_provenance_is_of_the_records_and_not_of_today(page):
    assert "campaign made-up" in page.text and "model tiny-qwen3-moe" in page.text
    assert "2026-11-20T10:00:00 to 2026-11-20T10:01:00" in page.text
    assert "engine version 0.5.23+standin" in page.text


def test_facts_of_the_node_are_shown_where_there_are_any(told):
    _, _, _, folder = next(told.layout.all_attempts())
    (folder / "node.json").write_text('{"gpu": "none", "cpu": "2 x <fast>"}')
    html, _ = render(told.layout, told.points)

    assert "node: cpu" in html and "2 x &lt;fast&gt;" in html


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (0.0, "0.00"),
        (0.0042, "0.0042"),
        (1.234, "1.23"),
        (12.34, "12.3"),
        (1234.5, "1,234"),
    ],
)
def test_a_number_has_about_three_digits_and_a_missing_one_none(value, text):
    assert number(value) == text


def test_an_axis_that_no_code_reads_is_named_on_the_page(tmp_path):
    history = Finished(tmp_path, campaign())
    history.measured("tp1", rates={1: 64, 2: 100})
    plan = read_json(history.layout.plan)
    write_json(history.layout.plan, {**plan, "warnings": ["dead_flag: axis <steps> does nothing"]})

    page, _ = render(history.layout, history.collect())

    assert "dead_flag: axis &lt;steps&gt; does nothing" in page
