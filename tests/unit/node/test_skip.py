"""A launch that is not needed: a record without a server, complete, and no failure."""

import pytest

from builders import History, campaign
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json
from sgmatrix.node import launch as launch_module
from sgmatrix.node.launch import STOPPING_VARIABLE, run_teardown, skip_launch

PAIR = {
    "name": "slots",
    "baseline": {"max_running_requests": 4},
    "variant": {"max_running_requests": 8},
    "primary": {"concurrency": 2},
    "launches": {"min": 3, "max": 4},
    "noise_pair": False,
}
ON = "max-running-requests-8"
WHY = "slots: c0002-i16-o4-random-ids: better at look 1"


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.delenv(STOPPING_VARIABLE, raising=False)

    def no_warden(spec):
        raise AssertionError("a server was started")

    monkeypatch.setattr(launch_module, "start_warden", no_warden)
    return History(tmp_path, campaign(axes={"max_running_requests": [4, 8]}, compare=[PAIR]))


def test_no_server_is_started_and_the_record_says_why(made, files):
    record = skip_launch(made.layout, ON, "4", WHY)

    assert (record["status"], record["reason"], record["detail"]) == ("skipped", "ab_decided", WHY)
    assert (record["cell"], record["launch"], record["attempt"]) == (ON, "4", 1)
    assert (record["argv"], record["info"], record["live"], record["times"]) == (
        *(None, None, None),
        {},
    )
    folder = made.layout.attempt(ON, "4", 1)
    assert read_json(folder / "server.json") == record
    assert files(folder) == ["closed.json", "server.json", "spec.json"]
    spec = read_json(folder / "spec.json")
    planned = next(
        one for one in made.plan["launches"] if (one["cell"], one["launch"]) == (ON, "4")
    )
    assert spec["rule"] == planned["condition"]["rule"] is not None
    assert spec["points"] == planned["points"]


def test_its_teardown_completes_the_attempt_as_skipped(made):
    record = skip_launch(made.layout, ON, "4", WHY)
    final = run_teardown(made.layout, record)

    assert (final["status"], final["reason"], final["detail"]) == ("skipped", "ab_decided", WHY)
    assert (final["warmup"], final["argv"], final["server_times"]) == (None, None, {})
    assert read_json(made.layout.attempt(ON, "4", 1) / "teardown.json") == final
    (event,) = made.layout.events.read_text().splitlines()
    assert '"skipped"' in event and '"ab_decided"' in event


def test_a_launch_that_was_skipped_and_is_asked_for_anew_is_another_attempt(made):
    for want in (1, 2):
        record = skip_launch(made.layout, ON, "4", WHY)
        assert record["attempt"] == want


def test_a_campaign_that_is_being_stopped_skips_nothing(made, monkeypatch, tmp_path):
    marker = tmp_path / "stopping"
    marker.write_text("gpu_busy: taken")
    monkeypatch.setenv(STOPPING_VARIABLE, str(marker))

    with pytest.raises(SgmatrixError, match="not begun: gpu_busy: taken") as caught:
        skip_launch(made.layout, ON, "4", WHY)
    assert caught.value.code == "interrupted"
    assert not made.layout.attempts(ON, "4").exists()
