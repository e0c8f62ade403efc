"""States of a campaign that began at 1000 s of unix time."""

import pytest

from builders import PROJECT, campaign
from sgmatrix.core.layout import Layout
from sgmatrix.plan.plan import make_plan
from sgmatrix.present.estimate import Estimate
from sgmatrix.present.terminal.state import State


@pytest.fixture
def state_of(tmp_path):
    """Make the state of a campaign with these cells, or with one for each number of slots."""

    def make(*cells, launches=1, slots=0):
        layout = Layout(tmp_path / "results" / "made-up")
        axes = {"max_running_requests": list(range(1, slots + 1))} if slots else {}
        what = campaign(axes=axes or {"parallelism": list(cells)}, launches=launches)
        plan = make_plan(what, layout, PROJECT)
        todo = [(one.cell, one.launch) for one in plan.launches]
        return State(plan, Estimate(plan, layout), todo, 1000.0)

    return make


@pytest.fixture
def state(state_of):
    return state_of("tp1", "tp2")
