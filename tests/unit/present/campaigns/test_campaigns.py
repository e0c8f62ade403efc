"""Two finished campaigns side by side: what is matched, judged, told and written."""

import math
import shutil

import pyarrow.parquet as pq
import pytest
from scipy import stats

from builders import campaign
from finished import Finished
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json, write_json
from sgmatrix.core.schemas_compare import COMPARISON
from sgmatrix.present.campaigns.compared import compare
from sgmatrix.present.campaigns.session import CampaignsSession
from sgmatrix.present.campaigns.text import told
from sgmatrix.present.campaigns.write import compare_campaigns
from sgmatrix.present.options import Options

BASE = {"1": 100.0, "2": 101.0, "3": 102.0}
OTHER = {"1": 110.0, "2": 111.0, "3": 112.0}
LOAD = "c0002-i16-o4-random-ids"


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Make a campaign: throughput at concurrency 2 by launch, for each cell."""
    monkeypatch.chdir(tmp_path)

    def make(name, cells, collect=True, **changes):
        changes = {"launches": 3, "axes": {"parallelism": list(cells)}, **changes}
        history = Finished(tmp_path, campaign(campaign=name, **changes))
        for cell, rates in cells.items():
            for launch, rate in rates.items():
                folder = history.measured(cell, launch, rates={1: 64.0, 2: rate})
                write_json(folder / "node.json", {"hostname": f"node-of-{name}", "gpus": []})
        if collect:
            history.collect()
        return history

    return make


@pytest.fixture
def pair(made):
    return made("night-1", {"tp1": BASE, "tp2": BASE}), made("night-2", {"tp1": OTHER, "tp4": BASE})


def compared(*histories, bound_percent=1.0):
    labels = [one.campaign.campaign for one in histories]
    return compare([one.layout for one in histories], labels, bound_percent)


def row(found, metric="output_tok_s", load=LOAD):
    (one,) = [r for r in found.rows if (r["metric"], r["load_id"]) == (metric, load)]
    return one


def test_what_both_have_is_judged_and_what_one_has_is_named(pair):
    found = compared(*pair)

    assert found.found.cells == ("tp1",)
    assert found.found.cells_only == (("tp2",), ("tp4",))
    one = row(found)
    assert (one["verdict_text"], one["base_launches"], one["other_launches"]) == ("better", 3, 3)
    assert one["effect_percent"] == pytest.approx(9.9011, abs=1e-3)
    # Holm over two load points of which the other does not differ: half of alpha
    assert one["confidence"] == pytest.approx(1 - 0.05 * 0.9 / 2)
    logs = [[math.log(rate) for rate in arm.values()] for arm in (OTHER, BASE)]
    theirs = stats.ttest_ind(*logs, equal_var=False).confidence_interval(1 - 0.05 * 0.9 / 2)
    assert one["interval_low_percent"] == pytest.approx(100 * math.expm1(theirs.low))
    assert one["interval_high_percent"] == pytest.approx(100 * math.expm1(theirs.high))
    assert one["noise_floor_percent"] == pytest.approx(1.36, abs=0.02)
    same = row(found, load="c0001-i16-o4-random-ids")
    assert same["verdict_text"] == "no difference larger than 1 %"
    assert len(found.rows) == 3 * 2


def test_single_runs_are_marked_and_have_no_verdict(made):
    one = made("a", {"tp1": {"1": 100.0}}, launches=1), made("b", {"tp1": {"1": 90.0}}, launches=1)
    found = compared(*one)

    said = row(found)
    assert said["verdict_text"] == "no verdict (single runs)"
    assert (said["effect_percent"], said["p"]) == (pytest.approx(-10.0), None)
    assert "Without three launches of a cell in each campaign there is no verdict" in told(found)


def test_barred_and_failed_points_are_left_out_and_counted(pair):
    base, other = pair
    folder = other.layout.attempt("tp1", "2", 1)
    other.change_point(folder, 2, validity="throttled")
    other.collect()

    found = compared(base, other)

    said = row(found)
    assert (said["other_launches"], said["other_left_out"]) == (2, 1)
    assert said["verdict_text"] == "no verdict (launches: 3 against 2, 3 of each are needed)"
    assert "left out of night-2, output_tok_s: 1 missing, failed or barred by flags" in told(found)


def test_one_name_for_two_things_is_named_and_not_compared(made):
    base = made("a", {"tp1": BASE, "tp2": BASE})
    load = {"concurrency": [1, 2], "input_len": 16, "output_len": 4}
    more = {**load, "requests": {"min": 16, "per_concurrency": 4}}
    other = made("b", {"tp1": OTHER, "tp2": BASE}, load=more)

    with pytest.raises(SgmatrixError, match="requests 8 against 16") as caught:
        compared(base, other)
    assert caught.value.code == "nothing_to_compare"

    plan = read_json(base.layout.plan)
    plan["cells"]["tp2"]["axes_text"] = {"parallelism": "tp4"}
    for launch in plan["launches"]:
        if launch["cell"] == "tp1":
            for point in launch["points"]:
                point["requests"] = point["min_requests"] = 16
    write_json(base.layout.plan, plan)
    found = compared(base, other)
    assert found.found.unlike == ("cell tp2: parallelism tp4 against tp2",)
    assert found.found.cells == ("tp1",)


def test_load_points_of_one_campaign_are_named(made):
    load = {"concurrency": [2, 4], "input_len": 16, "output_len": 4}
    found = compared(made("a", {"tp1": BASE}), made("b", {"tp1": OTHER}, load=load))

    assert found.found.loads_only == (
        ("tp1: c0001-i16-o4-random-ids",),
        ("tp1: c0004-i16-o4-random-ids",),
    )


def test_what_changed_around_them_is_told(made):
    base = made("a", {"tp1": BASE})
    for launch in "123":
        server = base.layout.attempt("tp1", launch, 1) / "server.json"
        write_json(server, {**read_json(server), "info": {"version": "0.5.22"}})
    base.collect()
    other = made("b", {"tp1": OTHER})
    plan = read_json(other.layout.plan)
    plan["model"]["digest"] = "0" * 64
    write_json(other.layout.plan, plan)

    changed = {one.fact: (one.base, one.other) for one in compared(base, other).changed}

    assert changed["engine.version"] == ("0.5.22", "0.5.23+standin")
    assert changed["node.hostname"] == ("node-of-a", "node-of-b")
    assert changed["model.digest"][1] == "0" * 64
    assert len(changed) == 3


def test_without_tables_the_history_is_read(made):
    base, other = made("a", {"tp1": BASE}), made("b", {"tp1": OTHER}, collect=False)
    assert row(compared(base, other))["verdict"] == "better"


def test_nothing_measured_is_refused(made):
    base, empty = made("a", {"tp1": BASE}), made("b", {"tp1": {}})
    with pytest.raises(SgmatrixError, match="has no measured point") as caught:
        compared(base, empty)
    assert "run the campaign b first" in caught.value.fix


def test_a_damaged_table_is_refused_by_its_folder(pair):
    pair[1].points.write_bytes(b"PAR1 and no more")
    with pytest.raises(
        SgmatrixError, match=r"results/night-2/datasets/points\.parquet is no"
    ) as told:
        compared(*pair)
    assert told.value.fix.startswith("copy the results again")


def test_a_plan_of_an_earlier_version_may_lack_facts(pair):
    plan = read_json(pair[0].layout.plan)
    for name in ("engines", "settings", "client"):
        del plan[name]
    write_json(pair[0].layout.plan, plan)
    changed = {one.fact: one.base for one in compared(*pair).changed}
    assert changed["warmup.max_waves"] == "not there"
    assert "client" not in changed  # the points say it


def test_nothing_in_common_is_refused(made):
    with pytest.raises(SgmatrixError, match="no cell and load point is in both"):
        compared(made("a", {"tp1": BASE}), made("b", {"tp2": BASE}))


def test_the_files_hold_the_rows_and_are_the_same_again(pair, tmp_path):
    layouts, labels = [one.layout for one in pair], ["night-1", "night-2"]
    folder = tmp_path / "out"

    text = compare_campaigns(layouts, labels, folder, 1.0)
    first = {file.name: file.read_bytes() for file in folder.iterdir()}
    compare_campaigns(layouts, labels, folder, 1.0)

    assert {file.name: file.read_bytes() for file in folder.iterdir()} == first
    assert sorted(first) == ["comparison.csv", "comparison.parquet", "index.html"]
    table = pq.read_table(folder / "comparison.parquet")
    assert table.schema.names == COMPARISON.names
    assert (table.num_rows, len(first["comparison.csv"].splitlines())) == (6, 7)
    page = first["index.html"].decode()
    assert '<td class="text better">better</td>' in page
    assert "The launches of two campaigns are not interleaved" in page
    assert "The launches of two campaigns are not interleaved" in text
    line = next(line for line in text.splitlines() if line.startswith("tp1   2 (i16"))
    assert line.split() == [
        *["tp1", "2", "(i16-o4-random-ids)", "101", "111", "+9.9", "%"],
        *["+6.9", "to", "+13.0", "%", "better", "3/3"],
    ]


def named(**options):
    return CampaignsSession(Options(**options))


def test_campaigns_are_named_or_pointed_at(pair, tmp_path):
    found = named(base="night-1", other=str(tmp_path / "results/night-2"))
    assert found.labels == ["night-1", "night-2"]
    assert str(found.layout.root) == "results/compare/night-1--night-2"


def test_copies_of_one_campaign_are_told_apart_by_their_folders(pair, tmp_path):
    for node in ("node-a", "node-b"):
        shutil.copytree(pair[0].layout.root, tmp_path / node / "results" / "night-1")
    found = named(base="node-a/results/night-1", other="node-b/results/night-1")
    assert found.labels == ["node-a", "node-b"]


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({"base": "night-1"}, "--config names base alone"),
        ({"base": "night-1", "other": "nihgt-2"}, "one of night-2, night-1"),
        ({"base": "night-1", "other": "results/night-1"}, "base and other are both"),
        ({"base": "night-1", "other": "no-plan"}, "has no plan.json"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_name(pair, tmp_path, options, want):
    (tmp_path / "results" / "no-plan").mkdir()
    with pytest.raises(SgmatrixError) as caught:
        named(**options)
    assert want in str(caught.value)
    assert caught.value.code == "config_rejected"
    assert caught.value.fix
