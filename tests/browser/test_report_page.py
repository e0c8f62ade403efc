"""The report as a reader's browser shows it: it runs nothing, complains of nothing, says why."""

import html
import re
import shutil
import subprocess

import pytest

from builders import campaign
from finished import Finished
from sgmatrix.present.report import render

pytestmark = pytest.mark.browser

SCRIPT = "<script>document.title = 'taken over'</script>"
# The network is closed to the browser's own errands, and nothing of a former start is left.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--v=0",
    "--dump-dom",
]


@pytest.fixture
def browse(tmp_path):
    """Open a page; return its DOM as the browser sees it, and what it wrote to the console."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.fail("Chromium is not there: apt-get install chromium")

    def opened(page):
        file = tmp_path / "index.html"
        file.write_text(page, encoding="utf-8")
        profile = tmp_path / "profile"
        ended = subprocess.run(
            [chromium, *FLAGS, f"--user-data-dir={profile}", file.as_uri()],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return ended.stdout, [line for line in ended.stderr.splitlines() if "CONSOLE" in line]

    return opened


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    history = Finished(
        tmp_path_factory.mktemp("told"), campaign(axes={"parallelism": ["tp1", "tp2"]})
    )
    history.measured("tp1", rates={1: 64, 2: 100})
    history.died("tp2", root=f"RuntimeError: {SCRIPT}", rates={1: 60})
    return render(history.layout, history.collect())[0]


def test_the_page_loads_without_a_complaint_and_names_what_failed(browse, page):
    dom, console = browse(page)
    cells = re.search(r'<table class="cells">.*?</table>', dom, flags=re.DOTALL)[0]
    row = next(row for row in cells.split("<tr") if "tp2" in row).replace("<wbr>", "")

    assert console == []
    assert "server_crash" in row and "the server died" in row
    assert "<svg" in dom and "results/made-up/cells/tp2/cell.yaml" in row


def test_a_script_in_a_log_line_is_text(browse, page):
    dom, _ = browse(page)

    assert "<title>made-up · sglang-matrix</title>" in dom
    assert html.escape(SCRIPT, quote=False) in dom


def test_a_script_that_was_not_escaped_would_not_run_either(browse, page):
    broken = page.replace(str(html.escape(SCRIPT)).replace("&#x27;", "&#39;"), SCRIPT)
    assert SCRIPT in broken
    dom, console = browse(broken)

    assert "<title>made-up · sglang-matrix</title>" in dom
    assert any("Content Security Policy" in line for line in console)
