"""Pictures of the pages for README and docs, from a real campaign, by a real browser.

make screenshots               # of results/demo, after make demo

docs/img/report.png            the report's first screen
docs/img/mlflow-campaign.png   MLflow's shared page of the study: curves by concurrency
docs/img/mlflow-launch.png     MLflow's page of the best launch
docs/img/report-100-cells.png  small multiples, of made-up cells (tests/browser/conftest.py)
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT / "tests" / "browser"), str(PROJECT / "workflow" / "scripts")]

from conftest import hundred  # noqa: E402

from mlflow_server import serving  # noqa: E402
from sgmatrix.core.files import read_json  # noqa: E402
from sgmatrix.present.report import render  # noqa: E402

WIDTH = 1280
PATIENCE_MS = 60_000
ML = "?workflowType=machine_learning"
"""Else MLflow shows an experiment as one of traces and prompts."""
SETTLE_MS = 3_000
"""MLflow's pages ask on for as long as they are open, so no event tells that they are done."""


def keep(page: Page, file: Path, height: int) -> None:
    """Write what the page shows, from its top."""
    shot = page.screenshot(clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
    Image.open(io.BytesIO(shot)).convert("RGB").save(file, optimize=True)
    print(f"{file}: {WIDTH} x {height}, {file.stat().st_size // 1024} KiB")


def opened(browser: Browser, address: str, height: int) -> Page:
    page = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme="light")
    page.set_default_timeout(PATIENCE_MS)
    page.goto(address)
    return page


def of_report(browser: Browser, results: Path, into: Path) -> None:
    page = opened(browser, (results / "report" / "index.html").resolve().as_uri(), 1100)
    keep(page, into / "report.png", 1100)
    page.close()


def without_assistant(page: Page) -> None:
    """Close what stands beside MLflow's page."""
    page.locator("[data-component-id='mlflow.assistant.chat_panel.close']").click()
    page.wait_for_timeout(SETTLE_MS)


def of_mlflow(browser: Browser, results: Path, into: Path) -> None:
    told = read_json(results / "tracking.json")
    launches = sorted(told["runs"].items())
    with serving(results.parent / "mlflow.db") as address:
        page = opened(browser, f"{address}/{told['page']}", 1300)
        without_assistant(page)
        page.locator(".js-plotly-plot .scatterlayer").nth(2).wait_for(state="attached")
        page.wait_for_timeout(SETTLE_MS)
        keep(page, into / "mlflow-campaign.png", 1300)
        run = launches[0][1]["run_id"]
        page.goto(f"{address}/#/experiments/{told['experiment_id']}/runs/{run}{ML}")
        page.get_by_text("Run it again").first.wait_for()
        page.wait_for_timeout(SETTLE_MS)
        keep(page, into / "mlflow-launch.png", 900)
        page.close()


def of_many_cells(browser: Browser, into: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        told = hundred(Path(folder))
        file = Path(folder) / "index.html"
        file.write_text(render(told.layout, told.collect())[0], encoding="utf-8")
        page = opened(browser, file.as_uri(), 900)
        page.locator("#curves").scroll_into_view_if_needed()
        page.evaluate("document.getElementById('curves').scrollIntoView({behavior: 'instant'})")
        keep(page, into / "report-100-cells.png", 900)
        page.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=PROJECT / "results" / "demo")
    parser.add_argument("--into", type=Path, default=PROJECT / "docs" / "img")
    args = parser.parse_args()
    args.into.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        of_report(browser, args.results, args.into)
        of_mlflow(browser, args.results, args.into)
        of_many_cells(browser, args.into)
        browser.close()


if __name__ == "__main__":
    main()
