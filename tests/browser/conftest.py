"""Debian's Chromium, driven: what a reader sees, what the console says, what leaves the page."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from builders import campaign
from finished import Finished
from sgmatrix.present.report import render


@dataclass
class Seen:
    """A page, and what it did beside being shown."""

    page: Page
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    """Beyond the page itself."""


@pytest.fixture(scope="session")
def chromium_browser() -> Iterator[Browser]:
    found = shutil.which("chromium")
    if found is None:
        pytest.fail("Chromium is not there: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def browse(chromium_browser, tmp_path):
    """Open a page given as text; keywords are those of a browser context."""

    @contextmanager
    def opened(html: str, **settings) -> Iterator[Seen]:
        file = tmp_path / "index.html"
        file.write_text(html, encoding="utf-8")
        context = chromium_browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, **settings}
        )
        seen = Seen(context.new_page())
        seen.page.on("console", lambda message: seen.console.append(message.text))
        seen.page.on("pageerror", lambda error: seen.console.append(str(error)))
        seen.page.on(
            "request",
            lambda request: (
                seen.requests.append(request.url) if request.url != file.as_uri() else None
            ),
        )
        seen.page.goto(file.as_uri())
        yield seen
        context.close()

    return opened


def hundred(folder: Path) -> Finished:
    """Return the history of 100 cells at 10 load points: six died, nine have a flagged point."""
    axes = {
        "parallelism": ["tp1", "tp2", "tp4", "tp1pp2"],
        "chunked_prefill_size": [512, 1024, 2048, 4096, 8192],
        "mem_fraction": [0.8, 0.85, 0.9, 0.92, 0.94],
    }
    loads = [2**n for n in range(10)]
    load = {"concurrency": loads, "input_len": 16, "output_len": 4}
    told = Finished(folder, campaign(axes=axes, load=load))
    for place, cell in enumerate(told.cells):
        factor = (1, 1.6, 2.2, 2.6)[place // 25] * (
            1 + 0.05 * (place // 5 % 5) + 0.01 * (place % 5)
        )
        rates = {at: round(60 * factor * at / (1 + at / 60), 2) for at in loads}
        itl_s = 0.002 * (1 + place / 100)
        if place % 17 == 5:
            told.died(cell, root="torch.OutOfMemoryError: CUDA out of memory", rates=rates)
        else:
            flags = {256: "cold"} if place % 11 == 3 else None
            told.measured(cell, rates=rates, validity=flags, itl_s=itl_s)
    return told


@pytest.fixture(scope="session")
def large_page(tmp_path_factory) -> str:
    """The report of a hundred cells."""
    told = hundred(tmp_path_factory.mktemp("hundred"))
    return render(told.layout, told.collect())[0]
