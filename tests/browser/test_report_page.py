"""The report as a reader's browser shows it: it complains of nothing, asks nobody, and helps."""

import html
import re

import pytest

from builders import campaign
from finished import Finished
from sgmatrix.present.figures.palette import DARK, DARK_PAGE, LIGHT, LIGHT_PAGE
from sgmatrix.present.report import render

pytestmark = pytest.mark.browser

SCRIPT = "<script>document.title = 'taken over'</script>"
TITLE = "made-up · sglang-matrix"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    history = Finished(
        tmp_path_factory.mktemp("told"), campaign(axes={"parallelism": ["tp1", "tp2", "tp4"]})
    )
    history.measured("tp1", rates={1: 64, 2: 100})
    history.died("tp2", root=f"RuntimeError: {SCRIPT}", rates={1: 60})
    history.measured("tp4", rates={1: 70, 2: 1010}, validity={1: "cold"}, itl_s=0.001)
    return render(history.layout, history.collect())[0]


def column(seen, number):
    """Return the texts of a column of the table of all points, of rows that are shown."""
    cells = seen.page.locator(f"#all-points tbody tr:visible > :nth-child({number})")
    return [" ".join(text.split()) for text in cells.all_inner_texts()]


def test_it_loads_without_a_complaint_asks_nobody_and_names_what_failed(browse, page):
    with browse(page) as seen:
        row = seen.page.locator("table.cells tbody tr", has_text="tp2").inner_text()

        assert (seen.console, seen.requests) == ([], [])
        assert "server_crash" in row and "the server died" in row
        assert "snakemake --configfile results/made-up/cells/tp2/cell.yaml" in row
        assert seen.page.locator("svg:visible").count() > 4
        verdict = seen.page.locator(".verdict").inner_text()
        assert verdict.startswith("tp4 has the highest throughput: 1,010 tok/s at concurrency 2.")
        assert "1 of 3 cells failed. 1 point is not to be trusted." in verdict


def test_a_script_in_a_log_line_is_text(browse, page):
    with browse(page) as seen:
        assert seen.page.title() == TITLE
        assert SCRIPT in seen.page.locator("table.failures").inner_text()


def test_a_script_that_was_not_escaped_would_not_run_either(browse, page):
    broken = page.replace(str(html.escape(SCRIPT)).replace("&#x27;", "&#39;"), SCRIPT)
    assert SCRIPT in broken
    with browse(broken) as seen:
        assert seen.page.title() == TITLE
        assert any("Content Security Policy" in line for line in seen.console)


def test_a_click_on_a_head_sorts_by_number_with_blanks_last_and_a_third_one_undoes_it(browse, page):
    with browse(page) as seen:
        planned = ["100", "60.0", "", "64.0", "70.0", "1,010"]
        head = seen.page.locator("#all-points thead th", has_text="output")
        orders = []
        for _ in range(3):
            head.locator("button").click()
            orders.append((head.get_attribute("aria-sort"), column(seen, 6)))

        assert orders[0] == ("descending", ["1,010", "100", "70.0", "64.0", "60.0", ""])
        assert orders[1] == ("ascending", ["60.0", "64.0", "70.0", "100", "1,010", ""])
        assert orders[2][0] == "none" and sorted(orders[2][1]) == sorted(planned)
        assert column(seen, 1) == ["tp1", "tp1", "tp2", "tp2", "tp4", "tp4"]


def test_rows_are_filtered_by_words_and_by_state(browse, page):
    with browse(page) as seen:
        count = seen.page.locator(".filters output")
        assert count.inner_text() == "6 of 6"
        seen.page.get_by_label("show rows with").fill("TP4 cold")
        assert (column(seen, 1), count.inner_text()) == (["tp4"], "1 of 6")
        seen.page.get_by_label("show rows with").fill("")
        seen.page.get_by_label("state").select_option("failed")
        assert (column(seen, 1), count.inner_text()) == (["tp2"], "1 of 6")
        seen.page.get_by_label("state").select_option("valid")
        assert column(seen, 1) == ["tp1", "tp1", "tp2", "tp4"]


def test_the_keyboard_reaches_the_legend_and_lights_up_the_curves_of_a_cell(browse, page):
    with browse(page) as seen:
        entry = seen.page.locator("#curves ~ .legend [data-k]", has_text="tp4")
        entry.focus()
        seen.page.keyboard.press("Enter")
        faint = seen.page.locator("svg .k0:not(.on)").first
        bright = seen.page.locator("svg .k2.on").first

        assert entry.get_attribute("aria-pressed") == "true"
        faint.evaluate("e => Promise.all(e.getAnimations().map(a => a.finished))")
        assert faint.evaluate("e => getComputedStyle(e).opacity") == "0.13"
        assert bright.evaluate("e => getComputedStyle(e).opacity") == "1"
        seen.page.keyboard.press("Space")
        assert entry.get_attribute("aria-pressed") == "false"


def test_every_way_on_is_reached_with_the_tab_key(browse, page):
    with browse(page) as seen:
        found = set()
        for _ in range(90):
            seen.page.keyboard.press("Tab")
            found.add(
                seen.page.evaluate(
                    "(e => e.tagName + (e.dataset.k ? ' legend' : '')"
                    " + (e.classList.contains('scroll') ? ' scroll' : ''))(document.activeElement)"
                )
            )

        assert {
            "A",
            "BUTTON",
            "INPUT",
            "SELECT",
            "SUMMARY",
            "SPAN legend",
            "DIV scroll",
        } - found <= {
            "SUMMARY"  # this page folds nothing away
        }


def test_each_figure_says_in_words_what_it_shows(browse, page):
    with browse(page) as seen:
        alts = seen.page.locator("figure [role=img]").evaluate_all(
            "all => all.map(e => e.getAttribute('aria-label'))"
        )

        assert len(alts) == seen.page.locator("figure").count() == 4
        assert alts[1] == (
            "Output throughput against concurrency. Highest: tp4 with 1,010 at concurrency 2; "
            "lowest: tp2 with 60 at concurrency 1."
        )


@pytest.mark.parametrize(
    ("scheme", "paper", "first"), [("light", LIGHT_PAGE, LIGHT[0]), ("dark", DARK_PAGE, DARK[0])]
)
def test_light_and_dark_are_of_the_reader(browse, page, scheme, paper, first):
    def rgb(colour):
        return "rgb({}, {}, {})".format(*(int(colour[at : at + 2], 16) for at in (1, 3, 5)))

    with browse(page, color_scheme=scheme) as seen:
        style = "e => getComputedStyle(e)"
        assert seen.page.locator("body").evaluate(f"{style}.backgroundColor") == rgb(paper)
        curve = seen.page.locator("svg .k1 path").first
        assert curve.evaluate("e => getComputedStyle(e).stroke") == rgb(first)


def test_paper_is_white_whatever_the_screen_is(browse, page):
    with browse(page, color_scheme="dark") as seen:
        seen.page.emulate_media(media="print")
        colours = "[getComputedStyle(document.body).color, getComputedStyle(document.body)"
        assert seen.page.evaluate(colours + ".backgroundColor]") == [
            "rgb(29, 33, 41)",
            "rgb(255, 255, 255)",
        ]


def test_without_scripts_it_is_whole(browse, page):
    with browse(page, java_script_enabled=False) as seen:
        assert column(seen, 1) == ["tp1", "tp1", "tp2", "tp2", "tp4", "tp4"]
        assert not seen.page.locator(".filters").is_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_hundred_cells_fit_the_width_of_a_phone_and_of_a_desk(browse, large_page, width):
    with browse(large_page, viewport={"width": width, "height": 844}) as seen:
        wide = "[...document.querySelectorAll('main > section > *, header > *')]"
        over = f"{wide}.filter(e => e.getBoundingClientRect().right > {width} + 1).length"

        assert seen.console == []
        assert seen.page.evaluate("document.documentElement.scrollWidth") == width
        assert seen.page.evaluate(over) == 0
        smallest = "Math.min(...[...document.querySelectorAll('td')].map(e => parseFloat("
        assert seen.page.evaluate(f"{smallest}getComputedStyle(e).fontSize)))") > 12


def test_a_hundred_cells_are_small_multiples_in_less_than_two_megabytes(large_page):
    assert len(large_page.encode()) < 2_000_000
    titles = re.findall(r"<h3>(chunked_prefill_size = \d+)</h3>", large_page)
    assert titles == [f"chunked_prefill_size = {size}" for size in (512, 1024, 2048, 4096, 8192)]
    curves = large_page[large_page.index('id="curves"') : large_page.index('id="matrix"')]
    assert len(re.findall("<figure", curves)) == 5 * 3
    # each panel has its own 20 cells, 25 of the base's value being one less, and the base
    assert len(set(re.findall(r'class="k(\d+)"', curves))) == 100
    assert "parallelism = tp2 <small>(25 cells)</small>" in large_page
