"""MLflow's own pages on a finished campaign, as its user sees them."""

import re
from urllib.parse import urlsplit

import pytest

from builders import campaign
from finished import Finished
from mlflow_server import serving
from sgmatrix.core.files import read_json
from sgmatrix.present.tracking.target import Target
from sgmatrix.present.tracking.track import track_to

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Address of MLflow's pages, and what tracking.json says."""
    history = Finished(
        tmp_path_factory.mktemp("told"), campaign(axes={"parallelism": ["tp1", "tp2", "tp4"]})
    )
    history.measured("tp1", rates={1: 64, 2: 100})
    history.powered(history.measured("tp2", rates={1: 60, 2: 125}), {0: 400.0, 1: 380.0})
    history.died("tp4", root="RuntimeError: boom", rates={1: 400})
    history.collect()
    results = history.layout.root.parent
    database = results / "mlflow.db"
    record = history.layout.root / "tracking.json"
    track_to(Target(f"sqlite:///{database}", "db", database), history.layout, record)
    with serving(database) as address:  # started in another folder than the results'
        yield address, read_json(record)


@pytest.fixture
def page(chromium_browser):
    asked = []
    context = chromium_browser.new_context(viewport={"width": 1600, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.on("request", lambda request: asked.append(request.url))
    yield page
    context.close()
    foreign = {urlsplit(url).hostname for url in asked if url.startswith("http")} - {"127.0.0.1"}
    assert foreign == set()
    assert asked


def test_the_shared_page_lists_the_cells_and_draws_curves_by_concurrency(told, page):
    address, record = told
    page.goto(f"{address}/{record['page']}")
    for cell in ("tp1", "tp2", "tp4"):
        page.get_by_role("link", name=cell, exact=True).first.wait_for()
    for section in ("Headline", "By concurrency", "Matrix"):
        page.get_by_text(section, exact=True).first.wait_for()
    for cell in ("tp1", "tp2", "tp4"):  # a legend below the curves
        page.get_by_text(f"{cell} (by_concurrency/output_tok_s)").first.wait_for()
    curves = page.locator(".js-plotly-plot .scatterlayer")
    curves.nth(2).wait_for(state="attached")
    assert page.get_by_text("Model training").first.is_visible()


def test_a_run_shows_its_note_its_prompts_and_its_artifacts(told, page):
    address, record = told
    run = record["runs"]["made-up/tp2/1"]["run_id"]
    base = f"{address}/#/experiments/{record['experiment_id']}/runs/{run}"
    page.goto(base)
    page.get_by_text("Run it again:").first.wait_for()
    page.get_by_text("i16-o4-random-ids").first.wait_for()
    page.goto(f"{base}/artifacts")
    for name in ("argv.json", "cell.yaml", "curves.png", "points.csv", "server.log"):
        page.get_by_text(re.compile(f"^{re.escape(name)}$")).first.wait_for()


def test_the_power_of_each_gpu_is_a_system_metric(told, page):
    address, record = told
    run = record["runs"]["made-up/tp2/1"]["run_id"]
    page.goto(f"{address}/#/experiments/{record['experiment_id']}/runs/{run}/system-metrics")
    for gpu in (0, 1):
        page.get_by_text(f"gpu_{gpu}_power_usage_watts").first.wait_for()
    page.locator(".js-plotly-plot .scatterlayer").nth(1).wait_for(state="attached")
