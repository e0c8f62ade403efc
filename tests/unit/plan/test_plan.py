"""The plan: what is measured, in which order, with which seeds, and in which attempt."""

from types import SimpleNamespace

import pytest

from builders import PROJECT, STANDIN, History, campaign, campaign_data
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import write_json
from sgmatrix.core.layout import Layout
from sgmatrix.core.yaml_strict import yaml_text
from sgmatrix.plan.campaign import Campaign, read_campaign
from sgmatrix.plan.launches import asked_attempt
from sgmatrix.plan.plan import make_plan, plan_record

AB = {"parallelism": ["tp1", "tp2"]}


def plan(tmp_path, what=None, **options):
    what = what or campaign()
    return make_plan(what, Layout(tmp_path / "results" / what.campaign), PROJECT, **options)


# --- the load client ----------------------------------------------------------------------------


def test_the_client_is_one_for_the_campaign_and_named_with_its_version(tmp_path):
    client = plan(tmp_path).client

    assert client["id"] == "sglang-python 0.5.23+standin"
    assert (client["kind"], client["vocab_size"], client["extension"]) == ("python", 32_768, None)
    assert client["env"] == {"PYTHONPATH": str(STANDIN)}


def test_a_rust_client_that_is_not_there_is_refused(tmp_path):
    load = {**campaign_data()["load"], "client": {"kind": "rust"}}

    with pytest.raises(SgmatrixError, match=r"engines\.standin has no Rust load client") as caught:
        plan(tmp_path, campaign(load=load))

    assert caught.value.code == "client_setup"


# --- cells and order -----------------------------------------------------------------------------


def test_launches_are_interleaved_every_second_round_backwards(tmp_path):
    made = plan(tmp_path, campaign(axes={"parallelism": ["tp1", "tp2", "tp4"]}, launches=3))

    assert [(one.launch, one.cell) for one in made.launches] == [
        *[("1", "tp1"), ("1", "tp2"), ("1", "tp4")],
        *[("2", "tp4"), ("2", "tp2"), ("2", "tp1")],
        *[("3", "tp1"), ("3", "tp2"), ("3", "tp4")],
    ]
    assert [one.position for one in made.launches] == list(range(9))
    assert made.launch("tp2", "2").position == 4


def test_cells_keep_the_order_of_the_file(tmp_path):
    made = plan(tmp_path, campaign(axes={"decode_steps": [8, 1], "parallelism": ["tp2", "tp1"]}))

    assert list(made.cells) == ["tp2-ds8", "tp1-ds8", "tp2-ds1", "tp1-ds1"]


def test_all_cells_that_cannot_be_are_named_at_once(tmp_path):
    axes = {"parallelism": ["tp8", "tp1"], "mem_fraction": [0.5, 85]}
    data = campaign_data(axes=axes, node={"gpus": 4})
    data["engines"]["standin"]["device"] = "cuda"

    with pytest.raises(SgmatrixError) as caught:
        plan(tmp_path, Campaign.model_validate(data))

    heads = (
        "config_rejected: cell tp8-mf0.50: 4 attention heads of tiny-qwen3-moe are not divisible "
        "by 8 shards"
    )
    refusal = (
        "config_rejected: mem_fraction = 85, allowed 0 < value < 1; "
        "fix: it is a share of the memory, not a percentage; write 0.85"
    )
    assert str(caught.value).splitlines() == [
        refusal,
        "config_rejected: cell tp8-mf0.50: needs 8 GPUs, node.gpus = 4",
        heads,
    ]


def test_two_cells_of_one_id_are_refused(tmp_path):
    with pytest.raises(SgmatrixError, match="two cells have the id x-a-b: "):
        plan(tmp_path, campaign(axes={"x": ["a/b", "a:b"]}))


def test_engines_that_are_not_declared_are_named_with_their_places():
    changes = {"engine": "a", "axes": {"engine": ["standin", "b"]}, "include": [{"engine": "c"}]}

    with pytest.raises(ValueError, match="engine = 'a' is not one of engines") as caught:
        Campaign.model_validate(campaign_data(**changes))

    assert "; axes.engine[1] = 'b' is" in str(caught.value)
    assert "; include[0].engine = 'c' is" in str(caught.value)


def test_planning_writes_nothing(tmp_path):
    plan(tmp_path)

    assert list(tmp_path.iterdir()) == []


# --- attempts ------------------------------------------------------------------------------------


@pytest.fixture
def history(tmp_path):
    """Write attempts: number -> what its teardown says; None: it was interrupted."""

    def write(attempts):
        layout = Layout(tmp_path)
        for number, final in attempts.items():
            folder = layout.attempt("tp1", "1", number)
            write_json(folder / "spec.json", {"points": [{"key": "k1"}, {"key": "k2"}]})
            if final is not None:
                write_json(folder / "teardown.json", final)
        return layout

    return write


def ok(asked):
    return {"status": "ok", "asked_attempt": asked}


def failed(asked):
    return {"status": "failed", "asked_attempt": asked}


@pytest.mark.parametrize(
    ("attempts", "plain", "retry", "rerun"),
    [
        ({}, 1, 1, 1),
        ({1: ok(1)}, 1, 1, 2),
        ({1: failed(1)}, 1, 2, 2),
        ({1: None}, 2, 2, 2),
        ({1: None, 2: ok(2)}, 2, 2, 3),
        ({1: ok(1), 2: None}, 3, 3, 3),
        ({1: None, 2: ok(1)}, 1, 1, 3),  # Snakemake's own retry: asked for 1, became 2
        ({1: failed(1), 2: failed(2), 3: failed(2)}, 2, 4, 4),
        ({9: ok(9), 10: ok(10)}, 10, 10, 11),
    ],
)
def test_the_attempt_asked_for_is_new_only_where_there_is_a_reason(
    history, attempts, plain, retry, rerun
):
    layout = history(attempts)

    def ask(**options):
        return asked_attempt(
            layout, "tp1", "1", [], **{"rerun": False, "retry_failed": False, **options}
        )

    assert (ask(), ask(retry_failed=True), ask(rerun=True)) == (plain, retry, rerun)


def test_a_half_written_teardown_is_an_interrupted_attempt(history):
    layout = history({1: ok(1)})
    (layout.attempt("tp1", "1", 1) / "teardown.json").write_text('{"status": "o')

    assert asked_attempt(layout, "tp1", "1", [], rerun=False, retry_failed=False) == 2


@pytest.mark.parametrize(("keys", "want"), [(["k1", "k2"], 1), (["k2"], 1), (["k1", "k3"], 2)])
def test_points_with_other_keys_are_another_measurement(history, keys, want):
    points = [SimpleNamespace(key=key) for key in keys]
    layout = history({1: ok(1)})

    assert asked_attempt(layout, "tp1", "1", points, rerun=False, retry_failed=False) == want


def test_the_plan_asks_the_history_of_each_launch(tmp_path):
    made = History(tmp_path, campaign(axes=AB))
    made.attempt("tp1")
    made.attempt("tp2", complete=False)

    again = plan(tmp_path, made.campaign)

    assert {one.cell: one.attempt for one in again.launches} == {"tp1": 1, "tp2": 2}


def test_an_attempt_that_a_running_invocation_decided_is_kept(tmp_path):
    made = plan(tmp_path, campaign(axes=AB), attempts={("tp2", "1"): 5})

    assert {one.cell: one.attempt for one in made.launches} == {"tp1": 1, "tp2": 5}


# --- one cell's own file -------------------------------------------------------------------------


def cell_file(tmp_path, history, cell):
    """The campaign that a cell's own record is, read back from its text."""
    file = tmp_path / "cell.yaml"
    file.write_text(yaml_text(history.plan["cells"][cell]["reproduce"]))
    return read_campaign(file)


MATRIX = {
    "axes": {"parallelism": ["tp1", "tp2"], "decode_steps": [None, 4], "revision": ["1e3"]},
    "include": [{"stream_interval": 2, "mem_fraction": 0.90}],
    "launches": 2,
}


@pytest.mark.parametrize(
    "cell",
    ["tp1-revision-1e3", "tp2-ds4-revision-1e3", "tp1-mf0.90-revision-1e3-stream-interval-2"],
)
def test_a_cell_s_own_file_gives_the_same_cell_alone(tmp_path, cell):
    history = History(tmp_path, campaign(**MATRIX))
    alone = plan(tmp_path, cell_file(tmp_path, history, cell))

    assert list(alone.cells) == [cell]
    assert alone.cells[cell].key == history.plan["cells"][cell]["key"]
    assert [one.launch for one in alone.launches] == ["1", "2"]
    points = {
        one["launch"]: one["points"] for one in history.plan["launches"] if one["cell"] == cell
    }
    for launch in alone.launches:
        assert [p.key for p in launch.points] == [p["key"] for p in points[launch.launch]]
        assert [p.seed for p in launch.points] == [p["seed"] for p in points[launch.launch]]


def test_a_cell_s_own_file_is_a_campaign_that_makes_new_attempts(tmp_path):
    what = campaign(axes=AB, launches=2)
    data = plan(tmp_path, what).reproduce["tp2"]

    assert Campaign.model_validate(data).rerun.launches == ["1", "2"]
    assert data["axes"] == {"parallelism": ["tp2"]}
    assert (data["design"], data["include"]) == ("full", [])


def test_running_one_cell_again_never_shrinks_the_campaign_s_plan(tmp_path):
    history = History(tmp_path, campaign(**MATRIX))
    history.attempt("tp2-ds4-revision-1e3", "2")
    what = cell_file(tmp_path, history, "tp2-ds4-revision-1e3")

    record = plan_record(plan(tmp_path, what), what, history.plan)

    assert record["cells"].keys() == history.plan["cells"].keys()
    before = {(one["cell"], one["launch"]): one for one in history.plan["launches"]}
    after = {(one["cell"], one["launch"]): one for one in record["launches"]}
    assert after.keys() == before.keys()
    assert len(record["launches"]) == len(after)
    changed = {key for key in after if after[key]["attempt"] != before[key]["attempt"]}
    assert changed == {("tp2-ds4-revision-1e3", "2")}
    assert after["tp2-ds4-revision-1e3", "2"]["attempt"] == 2
    assert all(after[key]["position"] == before[key]["position"] for key in after)


def test_a_changed_campaign_does_replace_its_former_plan(tmp_path):
    history = History(tmp_path, campaign(axes=AB))
    what = campaign(axes={"parallelism": ["tp4"]})

    record = plan_record(plan(tmp_path, what), what, history.plan)

    assert list(record["cells"]) == ["tp4"]
    assert [one["cell"] for one in record["launches"]] == ["tp4"]


def test_the_record_holds_the_axes_as_text_and_the_settings_of_the_campaign(tmp_path):
    what = campaign(axes={"parallelism": ["tp1"], "x": [True], "y": [None]}, node={"gpus": 2})
    record = plan_record(plan(tmp_path, what), what, None)

    assert record["cells"]["tp1-x-on"]["axes_text"] == {"parallelism": "tp1", "x": "on", "y": None}
    assert record["settings"]["node"]["gpus"] == 2
    assert record["cells"]["tp1-x-on"]["deadlines"]["stop_s"] == 5
    assert (record["campaign"], record["study"]) == ("made-up", "tests")


@pytest.mark.parametrize(
    "axes", [{"disable_radix_cache": [None, False]}, {"parallelism": ["tp1", "tp1ep1"]}]
)
def test_one_server_in_two_spellings_is_refused(tmp_path, axes):
    with pytest.raises(SgmatrixError, match="are the same server, spelled differently"):
        plan(tmp_path, campaign(axes=axes))
