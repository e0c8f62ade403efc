"""A page's data are taken once, and every figure and table is made again of them, byte for byte."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from builders import PROJECT, campaign
from finished import Finished
from sgmatrix.analysis.ceiling.table import write_ceilings
from sgmatrix.analysis.comparisons_table import write_comparisons
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json, write_json
from sgmatrix.present.case_study.__main__ import main, read_studies
from sgmatrix.present.case_study.experts import Opened, expected, mean_experts
from sgmatrix.present.case_study.page import with_tables
from sgmatrix.present.case_study.store import read_study
from sgmatrix.present.case_study.tables import TABLES, table

ROOT = "/somewhere/of-the-machine"


@pytest.fixture
def taken(tmp_path: Path) -> Path:
    """A page beside the data of a campaign of two cells, the second flagged at concurrency 2."""
    told = Finished(tmp_path, campaign(axes={"parallelism": ["tp2", "tp1"]}))
    plan = read_json(told.layout.plan)
    plan["model"]["path"] = f"{ROOT}/results/models/tiny-qwen3-moe"
    write_json(told.layout.plan, plan)
    told.powered(told.measured("tp2", rates={1: 64, 2: 128}), {0: 400.0})
    told.measured("tp1", rates={1: 80, 2: 160}, validity={2: "foreign_load"})
    told.collect()
    write_ceilings(told.layout, told.layout.datasets / "ceilings.parquet")
    write_comparisons(told.layout, told.points, told.layout.datasets / "comparisons.parquet")
    page = tmp_path / "page"
    assert main(["take", str(told.layout.root), str(page)]) == 0
    return page


def written(page: Path, *names: str) -> Path:
    """Write the page with those tables."""
    (folder,) = page.iterdir()
    tables = [f"<!-- table: {folder.name} {name} -->\nold\n<!-- end -->" for name in names]
    file = page.with_suffix(".md")
    file.write_text("# By hand\n\n" + "\n\ntext between\n\n".join(tables) + "\n")
    return file


def test_the_base_is_the_first_of_the_plan_and_flagged_values_bear_their_mark(taken: Path) -> None:
    (study,) = read_studies(taken)

    assert study.cells == ["tp2", "tp1"]
    assert table(study, "throughput").splitlines() == [
        "| concurrency | tp2 (1) | tp1 (1) |",
        "| --- | ---: | ---: |",
        "| 1 | 64 | 80 |",
        "| 2 | 128 | 160* |",
    ]
    assert "| 1 | +25.0 % |" in table(study, "levers")
    assert "| 2 | +25.0 %* |" in table(study, "levers")
    assert "| tp1 | 1 of 1 | 2 of 2 | 1 | foreign_load 1 |" in table(study, "cells")


def test_figures_and_tables_are_made_again_of_the_data_alone(taken: Path, tmp_path: Path) -> None:
    file = written(taken, *sorted(TABLES))
    assert main(["draw", str(taken)]) == 0
    first = {path.name: path.read_bytes() for path in taken.rglob("*") if path.is_file()}
    text = file.read_text()
    assert "old" not in text and text.startswith("# By hand") and "text between" in text
    assert {"throughput.svg", "tpot.svg", "power.svg"} <= first.keys()

    copy = tmp_path / "elsewhere" / "page"
    shutil.copytree(taken, copy)
    for made in copy.rglob("*.svg"):
        made.unlink()
    written(copy, *sorted(TABLES))
    assert main(["draw", str(copy)]) == 0
    again = {path.name: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert again == first
    assert copy.with_suffix(".md").read_text() == text


def test_no_file_names_the_folder_of_the_machine(taken: Path) -> None:
    for path in taken.rglob("*"):
        if path.suffix == ".json":
            assert ROOT not in path.read_text()
    (study,) = read_studies(taken)
    held = [study.points, study.telemetry, study.experts, study.ceilings, study.comparisons]
    assert ROOT not in str(held)


def test_telemetry_is_the_mean_of_some_seconds(taken: Path) -> None:
    (study,) = read_studies(taken)

    power = [row for row in study.telemetry if row["name"] == "power_w"]
    assert power and {row["value"] for row in power} == {400.0}
    assert len({(row["phase"], row["load_id"], row["t_s"] // 2) for row in power}) == len(power)


def test_what_is_not_there_is_refused_by_name(
    taken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (study,) = read_studies(taken)
    with pytest.raises(SgmatrixError, match="no table nosuch"):
        table(study, "nosuch")
    with pytest.raises(SgmatrixError, match=r"campaign.json is not there"):
        read_study(taken / "none")
    with pytest.raises(SgmatrixError, match="2 tables begin in the page, 1 have an end"):
        with_tables("<!-- table: a b -->\n<!-- table: a c -->\n<!-- end -->", lambda *_: "")

    taken.with_suffix(".md").write_text("<!-- table: other cells -->\n<!-- end -->\n")
    assert main(["draw", str(taken)]) == 1
    assert "the page shows other, which was not taken" in capsys.readouterr().err


def test_experts_are_the_mean_over_full_steps(taken: Path) -> None:
    def row(tokens: int, activated: int, step: int, layer: int) -> dict[str, object]:
        same = {"cell": "tp2", "batch": 8, "experts": 128, "top_k": 8}
        return {**same, "tokens": tokens, "activated": activated, "step": step, "layer": layer}

    rows = [row(8, 40, 1, 0), row(8, 50, 1, 1), row(8, 60, 2, 0), row(7, 9, 3, 0)]
    one = mean_experts(rows)["tp2"][8]
    assert one == Opened(50.0, 2, 128, 8)

    (study,) = read_studies(taken)
    facts = json.loads(json.dumps(study.facts))
    facts["cells"]["tp2"]["oea"] = "4-mask_padding"
    assert expected(study, "tp2", one, 8) == pytest.approx(128 * (1 - (1 - 8 / 128) ** 8))
    changed = type(study)(**{**vars(study), "facts": facts})
    assert expected(changed, "tp2", one, 8) == pytest.approx(128 * (1 - (1 - 4 / 128) ** 8))


PAGES = sorted({path.parents[1] for path in PROJECT.glob("docs/*/*/campaign.json")})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_of_this_project_is_that_of_its_data(page: Path, tmp_path: Path) -> None:
    copy = tmp_path / page.name
    shutil.copytree(page, copy)
    shutil.copy(page.with_suffix(".md"), copy.with_suffix(".md"))
    for made in copy.rglob("*.svg"):
        made.unlink()
    assert main(["draw", str(copy)]) == 0

    assert copy.with_suffix(".md").read_text() == page.with_suffix(".md").read_text()
    theirs = {path.relative_to(page): path.read_bytes() for path in page.rglob("*.svg")}
    assert {path.relative_to(copy): path.read_bytes() for path in copy.rglob("*.svg")} == theirs
    shown = set(page.with_suffix(".md").read_text().split("](")[1:])
    named = {one.partition(")")[0] for one in shown if ".svg)" in one}
    assert named and all((page.parent / name).is_file() for name in named)
    size = sum(path.stat().st_size for path in page.rglob("*") if path.is_file())
    assert size < 5e6
