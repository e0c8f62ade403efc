"""Probes that could count nothing, or not what was asked for, are told in the plan."""

import json

import pytest

from builders import PROJECT, with_plugin
from sgmatrix.core.errors import Refusal
from sgmatrix.core.layout import Layout
from sgmatrix.plan.plan import make_plan

OEA = {"oea": ["off", {"k0": 2}]}


def plan(tmp_path, **changes):
    given = with_plugin(**{"axes": OEA, **changes})
    return make_plan(given, Layout(tmp_path / "results/made-up"), PROJECT)


def flags(**more):
    return [{"where": {}, "flags": more}]


def test_a_batch_that_the_server_never_decodes_at_once_is_refused_for_each_cell(tmp_path):
    with pytest.raises(Refusal) as caught:
        plan(tmp_path, probe={"batches": [2, 8]}, overrides=flags(max_running_requests=4))

    assert caught.value.problems == [
        f"probe of {cell}: probe.batches: 8 is over max_running_requests = 4, so that no step has "
        "so many tokens; fix: at most 4 in probe.batches, or probe.experts: off"
        for cell in ("oea-off", "oea2")
    ]


def test_a_batch_as_large_as_the_room_of_the_server_is_counted(tmp_path):
    found = plan(tmp_path, probe={"batches": [4]}, overrides=flags(max_running_requests=4))

    assert [point.concurrency for point in found.probes[0].points] == [4]


def test_loads_above_the_room_of_the_server_are_not_probed_unless_they_are_named(tmp_path):
    load = {"concurrency": [1, 4, 8], "input_len": 16, "output_len": 4}

    found = plan(tmp_path, load=load, overrides=flags(max_running_requests=4))

    assert [point.concurrency for point in found.probes[1].points] == [1, 4]


def test_replicas_that_share_a_batch_are_refused_with_a_way_out(tmp_path):
    changes = {"overrides": flags(dp_size=2), "node": {"gpus": 2}}

    with pytest.raises(Refusal, match=r"probe of oea-off: dp_size = 2: each replica .*fix: probe"):
        plan(tmp_path, **changes)

    assert plan(tmp_path, **changes, probe={"experts": "off"}).probes == ()


def test_a_file_with_too_few_prompts_for_a_batch_is_refused(tmp_path):
    file = tmp_path / "p.jsonl"
    file.write_text("\n".join(json.dumps({"prompt": f"word {n}"}) for n in range(8)))
    load = {"concurrency": [1, 2], "input_len": 16, "output_len": 4}
    load |= {"dataset": "custom", "path": str(file)}

    assert plan(tmp_path, load=load, probe={"batches": [8]}).probes
    with pytest.raises(Refusal, match=r"holds 8 prompts, a batch of 9 needs 9; fix: more prompts"):
        plan(tmp_path, load=load, probe={"batches": [9]})


def test_answers_longer_than_the_context_are_refused(tmp_path):
    wide = {"overrides": flags(context_length=64)}

    assert plan(tmp_path, probe={"steps": 48}, **wide).probes
    with pytest.raises(Refusal, match=r"input_len \+ probe.steps = 65 is over the context"):
        plan(tmp_path, probe={"steps": 49}, **wide)


def test_a_cell_that_is_repeated_alone_has_no_probe_to_refuse(tmp_path):
    found = plan(tmp_path, overrides=flags(dp_size=2), node={"gpus": 2}, probe={"experts": "off"})
    alone = {**found.reproduce["oea2"], "probe": {"experts": "auto"}}

    layout = Layout(tmp_path / "results/made-up")
    assert make_plan(with_plugin(axes=OEA).model_validate(alone), layout, PROJECT).probes == ()
