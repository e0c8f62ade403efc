"""What the real engine says of a plan."""

from pathlib import Path

import pytest

from sgmatrix.core.layout import Layout
from sgmatrix.plan.campaign import Campaign, read_campaign
from sgmatrix.plan.engine_parser import parse_arguments
from sgmatrix.plan.inspection import audit_axes, refused_cells
from sgmatrix.plan.plan import make_plan

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """Return the default campaign with other axes, and its plan; the cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def make(**axes):
        data = read_campaign(PROJECT / "config/config.yaml").model_dump(exclude_none=True)
        campaign = Campaign.model_validate({**data, "axes": axes})
        return campaign, make_plan(campaign, Layout(tmp_path / "results/demo"), PROJECT)

    return make


@pytest.mark.engine
def test_decode_steps_is_dead_in_the_installed_engine_and_mem_fraction_is_not(planned):
    audits = audit_axes(*planned(decode_steps=[1, 4], mem_fraction=[0.02, 0.04]))

    assert {one.axis: one.verdict for one in audits} == {
        "decode_steps": "dead_flag",
        "mem_fraction": "read",
    }
    assert {one.version for one in audits} == {"0.5.23"}


@pytest.mark.engine
def test_the_engine_itself_refuses_what_it_does_not_know(planned, monkeypatch):
    _, plan = planned(attention_backend=["torch_native", "nonsense"], no_such_flag=[None, 1])

    refused = sorted(refused_cells(plan))

    assert len(refused) == 2  # one axis at a time
    assert refused[0].startswith(
        "cell attention-backend-nonsense: engine sglang-cpu refuses it: "
        "argument --attention-backend: invalid choice: 'nonsense'"
    )
    assert "unrecognized arguments: --no-such-flag 1" in refused[1]
    # asked once: the second time the interpreter is not started
    monkeypatch.setattr("sgmatrix.plan.inspection.parse_arguments", lambda *_: pytest.fail("asked"))
    assert sorted(refused_cells(plan)) == refused


@pytest.mark.engine
@pytest.mark.parametrize("axis", ["tensor_parallel", "max_running_request", "mem_fraction_stat"])
def test_an_abbreviation_is_no_flag(planned, axis):
    _, plan = planned(**{axis: [None, 1]})

    (refused,) = refused_cells(plan)

    assert f"unrecognized arguments: --{axis.replace('_', '-')} 1" in refused


def test_an_interpreter_that_cannot_import_the_engine_is_not_asked(tmp_path):
    assert parse_arguments("/bin/false", {}, [["--port", "1"]]) is None
    assert parse_arguments(str(tmp_path / "absent"), {}, []) is None


def test_axes_of_one_value_and_engines_without_source_are_not_audited(planned):
    campaign, plan = planned(decode_steps=[1])

    assert audit_axes(campaign, plan) == []
