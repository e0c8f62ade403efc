"""When the node is probed, and for what."""

import sys

import pytest

from builders import PROJECT, campaign, campaign_data
from sgmatrix.core.layout import Layout
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.node_probe import VERSION, planned_node_probe
from sgmatrix.plan.plan import make_plan

HERE = {"hostname": "a", "processor": "one"}


@pytest.fixture
def planned(tmp_path):
    """What a campaign asks for, given the record that is there."""

    def planned(record=None, *, what=None, to_come=True, node=HERE, one_cell=False, retry=False):
        plan = make_plan(what or campaign(), Layout(tmp_path / "made-up"), PROJECT)
        return planned_node_probe(
            plan.cells.values(),
            plan.engines,
            record,
            node=node,
            launches_to_come=to_come,
            one_cell=one_cell,
            retry_failed=retry,
        )

    return planned


def made(asked, status="ok", **changes):
    """The record of a probe that was asked for."""
    made_for = {name: getattr(asked, name) for name in ("engine_key", "device", "groups", "node")}
    return {
        "version": VERSION,
        "key": asked.key,
        "attempt": asked.attempt,
        "asked": {**made_for, **changes},
        "status": status,
    }


def on_gpus(*parallelism):
    data = campaign_data(axes={"parallelism": list(parallelism)}, node={"gpus": 8})
    data["engines"]["standin"]["device"] = "cuda"
    data["model"] = {"recipe": "tiny-qwen3-moe"}
    return Campaign.model_validate(data)


def test_the_first_cells_engine_measures_what_the_largest_cell_takes(planned):
    on_cpu = planned()
    assert (on_cpu.engine, on_cpu.python, on_cpu.device) == ("standin", sys.executable, "cpu")
    assert (on_cpu.gpus, on_cpu.groups, on_cpu.attempt) == (0, (), 1)

    assert planned(what=on_gpus("tp1")).groups == ()
    four = planned(what=on_gpus("tp1", "tp4"))
    assert (four.device, four.gpus, four.groups) == ("cuda", 4, (2, 4))


def test_what_was_measured_stands_while_nothing_is_another(planned):
    first = planned()

    again = planned(made(first))

    assert again.asked == first.asked
    assert not again.is_asked_anew(made(first))


@pytest.mark.parametrize(
    "another",
    [
        {"node": {"hostname": "b", "processor": "one"}},
        {"engine_key": "other packages"},
        {"device": "cuda"},
    ],
)
def test_another_node_or_engine_is_probed_once_something_is_to_be_launched(planned, another):
    record = made(planned(), **another)

    anew = planned(record)
    assert anew.attempt == 2 and anew.is_asked_anew(record)
    assert planned(record, to_come=False).asked == f"{record['key'][:16]}-1"


def test_more_gpus_are_probed_and_fewer_are_not(planned):
    four, two = on_gpus("tp4"), on_gpus("tp2")

    assert planned(made(planned(what=two)), what=four).attempt == 2
    assert planned(made(planned(what=four)), what=two).attempt == 1


def test_an_older_way_to_measure_is_replaced(planned):
    assert planned({**made(planned()), "version": VERSION - 1}).attempt == 2


def test_one_cell_repeated_alone_keeps_what_another_engine_measured_but_not_another_node(planned):
    record = made(planned(), engine_key="that of the base cell")

    assert planned(record, one_cell=True).attempt == 1
    there = {"hostname": "b", "processor": "one"}
    assert planned(record, one_cell=True, node=there).attempt == 2


def test_where_the_jobs_run_elsewhere_the_node_is_not_compared(planned):
    assert planned(made(planned()), node=None).attempt == 1


def test_a_failed_probe_is_repeated_on_demand_only(planned):
    record = made(planned(), status="failed")

    assert planned(record).attempt == 1
    assert planned(record, retry=True, to_come=False).attempt == 2
    assert planned(made(planned()), retry=True).attempt == 1
