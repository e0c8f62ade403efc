"""Loads that cannot be are refused before any launch."""

import json

import pytest

from builders import PROJECT, campaign
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.layout import Layout
from sgmatrix.plan.plan import make_plan


def plan(tmp_path, **changes):
    what = campaign(**changes)
    return make_plan(what, Layout(tmp_path / "results" / what.campaign), PROJECT)


LOAD = {"concurrency": [1], "input_len": 16, "output_len": 4}


def refused(tmp_path, **changes):
    with pytest.raises((SgmatrixError, ValueError)):
        plan(tmp_path, **changes)


def test_rates_whose_load_ids_are_equal(tmp_path):
    refused(tmp_path, load=LOAD | {"request_rate": [1.00000000001, 1.00000000002]})


def test_an_override_cannot_ask_for_what_the_campaign_could_not_topical(tmp_path):
    """output_len is at least 4 for topical: the client drops shorter ones."""
    refused(
        tmp_path,
        load=LOAD | {"dataset": "topical"},
        overrides=[{"where": {"parallelism": "tp1"}, "load": {"output_len": 2}}],
    )


def test_an_override_cannot_ask_for_what_the_campaign_could_not_prefix(tmp_path):
    refused(
        tmp_path,
        load=LOAD | {"dataset": "shared-prefix", "shared_prefix": {"prefix_len": 8}},
        overrides=[{"where": {"parallelism": "tp1"}, "load": {"input_len": 4}}],
    )


def test_more_groups_than_requests_are_refused_or_planned(tmp_path):
    load = LOAD | {"dataset": "shared-prefix", "shared_prefix": {"prefix_len": 8, "groups": 512}}
    try:
        made = plan(tmp_path, load=load)
    except (SgmatrixError, ValueError):
        return
    ((_, point),) = made.points()
    assert point.requests >= 512


def test_huge_durations(tmp_path):
    refused(tmp_path, load=LOAD | {"requests": {"duration_s": 1e300}, "request_rate": [1e6]})


def test_infinite_durations(tmp_path):
    refused(tmp_path, load=LOAD | {"requests": {"duration_s": float("inf")}, "request_rate": [1]})


def test_a_rate_that_cannot_end_within_its_deadline(tmp_path):
    refused(tmp_path, load=LOAD | {"request_rate": [0.001]})


def test_a_duration_that_cannot_end_within_its_deadline(tmp_path):
    refused(tmp_path, load=LOAD | {"requests": {"duration_s": 3600}})


def test_a_duration_without_warm_up_is_refused_in_the_plan(tmp_path):
    refused(tmp_path, load=LOAD | {"requests": {"duration_s": 3}}, warmup={"max_waves": 0})


def test_an_extra_launch_of_rates_with_duration(tmp_path):
    plan(tmp_path, load=LOAD | {"request_rate": [5], "requests": {"duration_s": 3}})


def test_prompts_that_are_a_folder(tmp_path):
    refused(tmp_path, load=LOAD | {"dataset": "custom", "path": str(tmp_path)})


def test_prompts_with_a_surrogate(tmp_path):
    file = tmp_path / "p.jsonl"
    file.write_text('{"prompt": "\\ud800"}\n' * 8)
    refused(tmp_path, load=LOAD | {"dataset": "custom", "path": str(file)})


def test_deeply_nested_prompts(tmp_path):
    file = tmp_path / "p.jsonl"
    file.write_text("[" * 100000 + "\n")
    refused(tmp_path, load=LOAD | {"dataset": "custom", "path": str(file)})


def test_equal_prompts_are_not_different_prompts(tmp_path):
    file = tmp_path / "p.jsonl"
    file.write_text(
        json.dumps({"prompt": "same"}) + "\n" + (json.dumps({"prompt": "same"}) + "\n") * 7
    )
    refused(tmp_path, load=LOAD | {"dataset": "custom", "path": str(file)})
