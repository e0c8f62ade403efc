"""The plan as people read it."""

import pytest

from builders import PROJECT, campaign
from finished import Finished
from sgmatrix.plan.flag_audit import FlagUse
from sgmatrix.plan.inspection import AxisAudit
from sgmatrix.plan.plan import make_plan
from sgmatrix.present.estimate import Estimate, clock
from sgmatrix.present.plan_view import audit_lines, plan_text


@pytest.fixture
def history(tmp_path):
    return Finished(tmp_path, campaign(axes={"parallelism": ["tp1", "tp2"]}))


def view(history, audits=()):
    plan = make_plan(history.campaign, history.layout, PROJECT)
    return plan_text(plan, history.layout, audits).splitlines()


def test_counts_and_states_before_anything_ran(history):
    lines = view(history)

    assert lines[0] == "campaign made-up: 2 cells, 2 launches, 4 load points"
    assert [line.split() for line in lines[4:6]] == [
        ["tp1", "0", "1", "2", "to", "do"],
        ["tp2", "0", "1", "2", "to", "do"],
    ]
    # 60 s start, 6 s warm-up, 2 x 4 s, 6 s stop, twice
    assert lines[7] == "to do: 2 launches, 4 load points, about 2:40 (assumed, there is no history)"


def test_what_is_done_is_not_to_do_and_teaches_the_estimate(history):
    history.measured("tp1", rates={1: 64, 2: 100})
    lines = view(history)

    assert [line.split()[4:] for line in lines[4:6]] == [["done"], ["to", "do"]]
    assert lines[7].startswith("to do: 1 launches, 2 load points, about ")
    assert lines[7].endswith("(from this campaign's history)")


def test_an_axis_that_nothing_reads_is_named_with_its_flag_and_version():
    dead = AxisAudit("decode_steps", "e", "0.5.23", (FlagUse("num_steps", True, ()),))
    read = AxisAudit("share", "e", "0.5.23", (FlagUse("share", True, ("srt/a.py:1",)),))

    (line,) = audit_lines([dead, read])

    assert line.startswith(
        "dead_flag: axis decode_steps: sglang 0.5.23 declares --num-steps and no"
    )


def test_variables_of_the_shell_that_servers_do_not_get_are_named(history, monkeypatch):
    for name in ("NCCL_DEBUG", "NCCL_ALGO"):
        monkeypatch.setenv(name, "x")
    engine = history.campaign.engines["standin"]
    engine.env["NCCL_ALGO"] = "Ring"  # the campaign gives it one of its own

    told = [line for line in view(history) if line.startswith("not passed on")]

    assert told == [
        "not passed on to servers: NCCL_DEBUG; declare in engines.<name>.env what they need"
    ]


@pytest.mark.parametrize(
    ("load", "most"),
    [
        ({"concurrency": [1, 128]}, None),
        ({"concurrency": [1, 129]}, 129),
        ({"request_rate": [9], "max_concurrency": 256}, 256),
        ({"request_rate": [9]}, None),  # how many there will be is not known
    ],
)
def test_more_streams_than_the_python_client_is_right_with_are_told(tmp_path, load, most):
    asked = {**load, "client": "python", "input_len": 16, "output_len": 4}
    lines = view(Finished(tmp_path, campaign(load=asked)))

    told = [line for line in lines if line.startswith("client_limited")]
    assert len(told) == (most is not None)
    assert all(f" up to {most} requests are in flight; above 128 " in line for line in told)


def test_cells_that_are_excluded_are_named(tmp_path):
    exclude = [{"parallelism": "tp2", "decode_steps": 4}]
    axes = {"parallelism": ["tp1", "tp2"], "decode_steps": [1, 4]}
    lines = view(Finished(tmp_path, campaign(axes=axes, exclude=exclude)))

    assert "left out by exclude: parallelism=tp2, decode_steps=4" in lines
    assert lines[0].startswith("campaign made-up: 3 cells")


def test_a_long_list_of_cells_is_cut_in_the_middle(tmp_path):
    many = Finished(tmp_path, campaign(axes={"chunked_prefill_size": list(range(1, 101))}))
    lines = view(many)

    assert "… 60 more cells …" in lines
    assert sum(line.startswith("chunked-prefill-size-") for line in lines) == 40


def test_measured_launches_scale_the_estimate(history):
    estimate = Estimate(make_plan(history.campaign, history.layout, PROJECT), history.layout)
    assert estimate.remaining_s([("tp1", "1"), ("tp2", "1")]) == pytest.approx(160)

    estimate.done(("tp1", "1"), 20)  # a quarter of the 80 s that were assumed

    assert estimate.remaining_s([("tp2", "1")]) == pytest.approx(20)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (59.9, "0:59"), (61, "1:01"), (3661, "1:01:01")],
)
def test_clock(seconds, text):
    assert clock(seconds) == text
