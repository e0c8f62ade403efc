"""What `snakemake --report` carries of a campaign."""

import base64
import re
from pathlib import Path

import pytest

from lab import Lab

pytestmark = pytest.mark.workflow


def carried(report: Path, path: str) -> tuple[str, bytes]:
    """Return the caption and the bytes of a result in a report of Snakemake."""
    html = report.read_text(encoding="utf-8")
    entry = html[html.index(f'"{path}": {{"name"') :]
    caption = re.search(r'"caption": "<p>(.*?)</p>', entry)
    data = re.search(r'"data_uri": "data:[^"]*?base64,([^"]*)"', entry)
    assert caption is not None and data is not None
    return caption[1], base64.b64decode(data[1])


def test_it_holds_our_page_and_its_points_as_they_are(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    lab = Lab(tmp_path_factory.mktemp("report"))
    lab.campaign("{parallelism: [tp1]}", waves=0, concurrency="[1]")
    run = lab.snakemake("--cores", "1")
    assert run.returncode == 0, run.stdout

    made = lab.snakemake("--report", "made.html")
    assert made.returncode == 0, made.stdout
    report = lab.folder / "made.html"

    caption, page = carried(report, "results/small/report/index.html")
    assert caption.startswith("The whole report: which cell is best")
    assert page == (lab.root / "report" / "index.html").read_bytes()
    caption, points = carried(report, "results/small/report/points.csv")
    assert caption.startswith("Every load point of every attempt")
    assert points == (lab.root / "report" / "points.csv").read_bytes()
