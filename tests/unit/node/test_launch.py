"""The launch and the teardown of one server, as the rules use them; with the stand-in server."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from builders import PROJECT, History, campaign, campaign_data
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json, write_json
from sgmatrix.core.layout import Layout
from sgmatrix.node import launch as launch_module
from sgmatrix.node import preflight, proc, ready
from sgmatrix.node.launch import (
    OWNER_VARIABLE,
    STOPPING_VARIABLE,
    disturbance_stops_campaign,
    refuse_when_orphaned,
    refuse_when_stopped,
    run_launch,
    run_teardown,
)
from sgmatrix.node.server import Server
from sgmatrix.plan.campaign import read_campaign
from sgmatrix.plan.plan import make_plan
from standin.launcher import alive


def history(tmp_path, *, axes=None, **flags):
    """A planned campaign on the stand-in with these server flags."""
    data = campaign_data(axes=axes or {"parallelism": ["tp1"]})
    data["engines"]["standin"]["flags"] |= flags
    return History(tmp_path, campaign(**data))


# --- a launch that goes well ---------------------------------------------------------------------


def test_a_launch_is_ready_and_its_teardown_completes_the_attempt(tmp_path, wardens, files):
    made = history(tmp_path)
    record = run_launch(made.layout, "tp1", "1")

    assert (record["status"], record["attempt"], record["asked_attempt"]) == ("ok", 1, 1)
    assert record["info"]["version"] == "0.5.23+standin"
    server = Server.from_record(record)
    assert server.process.alive()
    assert server.warden.pid == wardens[0].pid
    folder = made.layout.attempt("tp1", "1", 1)
    assert read_json(folder / "server.json") == json.loads(json.dumps(record))

    final = run_teardown(made.layout, record)

    assert (final["status"], final["reason"]) == ("ok", None)
    assert final["closed"]["detail"] == "the launch is finished"
    assert final["closed"]["server_exit_code"] == 0
    assert read_json(folder / "teardown.json") == json.loads(json.dumps(final))
    assert not server.process.alive()
    assert {"cell.yaml", "closed.json", "server.json", "server.log", "spec.json"} <= set(
        files(folder)
    )
    events = [json.loads(line) for line in made.layout.events.read_text().splitlines()]
    assert [e["event"] for e in events] == ["starting", "ready", "stopping", "launch_done"]


def test_a_cell_s_own_file_gives_the_cell_again(tmp_path, wardens):
    made = history(tmp_path, axes={"parallelism": ["tp1"], "revision": ["1e3"]})
    run_teardown(made.layout, run_launch(made.layout, "tp1-revision-1e3", "1"))

    read = read_campaign(made.layout.attempt("tp1-revision-1e3", "1", 1) / "cell.yaml")
    again = make_plan(read, Layout(tmp_path / "elsewhere"), PROJECT)
    assert {c.id: c.key for c in again.cells.values()} == {
        "tp1-revision-1e3": made.plan["cells"]["tp1-revision-1e3"]["key"]
    }


def test_a_number_is_used_once_also_when_the_plan_asks_for_a_used_one(tmp_path, wardens):
    made = history(tmp_path)
    made.attempt("tp1", number=3, complete=False)

    record = run_launch(made.layout, "tp1", "1")

    assert (record["attempt"], record["asked_attempt"]) == (4, 1)
    run_teardown(made.layout, record)


LAUNCH = """
import json, sys
from pathlib import Path
from sgmatrix.core.layout import Layout
from sgmatrix.node.launch import run_launch
print(json.dumps(run_launch(Layout(Path(sys.argv[1])), "tp1", "1")))
"""


def test_a_launch_job_may_end_and_its_server_stays(tmp_path, wardens, process):
    made = history(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(Path(launch_module.__file__).parents[2])}
    job = process(sys.executable, "-c", LAUNCH, str(made.layout.root), env=environment)
    record = json.loads(job.communicate()[0])
    server = Server.from_record(record)

    with server.in_use():
        ready.generate_one_token(server.port, timeout_s=20)

    final = run_teardown(made.layout, record)
    assert (job.returncode, final["status"], final["reason"]) == (0, "ok", None)


# --- the subject fails ---------------------------------------------------------------------------


def test_a_server_that_does_not_start_is_a_record_and_no_exception(tmp_path, wardens):
    made = history(tmp_path, no_such_flag=1)
    record = run_launch(made.layout, "tp1", "1")

    assert (record["status"], record["reason"]) == ("failed", "config_rejected")
    assert record["live"] is None

    final = run_teardown(made.layout, record)

    assert (final["status"], final["reason"]) == ("failed", "config_rejected")
    assert "--no-such-flag 1" in final["closed"]["root_line"]


def test_a_failed_point_makes_the_launch_fail_with_its_reason(tmp_path, wardens):
    made = history(tmp_path)
    record = run_launch(made.layout, "tp1", "1")
    points = Path(record["attempt_dir"]) / "points"
    write_json(points / "a.json", {"status": "ok", "reason": None})
    write_json(points / "b.json", {"status": "failed", "reason": "client_timeout", "detail": "d"})
    write_json(points / "c.json", {"status": "skipped", "reason": "client_timeout"})

    final = run_teardown(made.layout, record)

    assert (final["status"], final["reason"], final["detail"]) == ("failed", "client_timeout", "d")


def test_a_failed_warm_up_makes_the_launch_fail_with_its_reason(tmp_path, wardens):
    made = history(tmp_path)
    record = run_launch(made.layout, "tp1", "1")
    folder = Path(record["attempt_dir"])
    warmup = {"status": "failed", "reason": "client_crash", "detail": "0 of 2 succeeded"}
    write_json(folder / "warmup.json", warmup)
    write_json(folder / "points" / "a.json", {"status": "skipped", "reason": "client_crash"})

    final = run_teardown(made.layout, record)

    assert (final["status"], final["reason"]) == ("failed", "client_crash")
    assert final["detail"] == "0 of 2 succeeded"
    assert final["warmup"] == warmup


# --- the environment disturbs --------------------------------------------------------------------


def test_a_busy_node_raises_and_leaves_nothing_behind(
    tmp_path, wardens, own_temporary_folder, files
):
    data = campaign_data()
    data["engines"]["standin"]["min_free_memory_mb"] = preflight.free_memory_mb() + 10**6
    made = History(tmp_path, campaign(**data))

    with pytest.raises(SgmatrixError, match="MiB of memory free") as caught:
        run_launch(made.layout, "tp1", "1")

    assert caught.value.code == "gpu_busy"
    assert files(made.layout.root) == ["plan.json"]
    wardens[0].wait()
    assert list(own_temporary_folder.iterdir()) == []


def test_a_warden_that_ends_without_a_word_is_an_interruption(
    tmp_path, monkeypatch, own_temporary_folder, files
):
    made = history(tmp_path)
    monkeypatch.delenv(STOPPING_VARIABLE, raising=False)
    warden = subprocess.Popen(["true"], stdout=subprocess.PIPE, text=True)
    monkeypatch.setattr(launch_module, "start_warden", lambda _path: warden)

    with warden, pytest.raises(SgmatrixError, match="tp1 launch 1 was ended") as caught:
        run_launch(made.layout, "tp1", "1")

    assert caught.value.code == "interrupted"
    assert list(own_temporary_folder.iterdir()) == []
    assert files(made.layout.root) == ["plan.json"]


def test_a_server_that_was_ended_from_outside_is_never_filed_as_finished(
    tmp_path, wardens, process, monkeypatch, files
):
    made = history(tmp_path)
    owner = process()
    monkeypatch.setenv(OWNER_VARIABLE, json.dumps(proc.identify(owner.pid).record()))
    record = run_launch(made.layout, "tp1", "1")
    owner.kill()
    owner.wait()

    with pytest.raises(SgmatrixError, match="the Snakemake process is gone") as caught:
        run_teardown(made.layout, record)

    assert caught.value.code == "interrupted"
    assert "teardown.json" not in files(record["attempt_dir"])
    assert not alive(record["live"]["server"]["pid"])


def test_without_a_named_owner_it_is_the_parent_process(tmp_path, wardens):
    made = history(tmp_path)
    record = run_launch(made.layout, "tp1", "1")

    spec = read_json(Path(record["attempt_dir"]) / "spec.json")
    assert spec["owner"] == proc.identify(os.getppid()).record()
    run_teardown(made.layout, record)


# --- stopping a campaign -------------------------------------------------------------------------


@pytest.fixture
def marker(tmp_path, monkeypatch):
    monkeypatch.setenv(STOPPING_VARIABLE, str(tmp_path / "stopping"))
    return tmp_path / "stopping"


def disturbed(error):
    with disturbance_stops_campaign():
        raise error


def test_a_disturbance_stops_later_launches_and_says_why(marker):
    refuse_when_stopped()  # nothing yet
    with pytest.raises(SgmatrixError, match="gpu_busy"):
        disturbed(SgmatrixError("gpu_busy", "GPU 0 is used by 41", fix="free it"))

    with pytest.raises(SgmatrixError) as caught:
        refuse_when_stopped()

    assert str(caught.value) == "interrupted: not begun: gpu_busy: GPU 0 is used by 41"


def test_the_first_disturbance_is_the_one_that_is_named(marker):
    for facts in ("first", "second"):
        with pytest.raises(SgmatrixError):
            disturbed(SgmatrixError("gpu_busy", facts))

    assert marker.read_text() == "gpu_busy: first\n"


def test_a_bug_of_ours_is_no_disturbance(marker):
    with pytest.raises(ZeroDivisionError):
        disturbed(ZeroDivisionError())

    assert not marker.exists()


def test_nothing_is_published_for_a_snakemake_that_is_gone(monkeypatch, process):
    owner = process()
    refuse_when_orphaned()  # a rule run by hand has none
    monkeypatch.setenv(OWNER_VARIABLE, json.dumps(proc.identify(owner.pid).record()))
    refuse_when_orphaned()
    owner.kill()
    owner.wait()

    with pytest.raises(SgmatrixError, match="the Snakemake process is gone") as caught:
        refuse_when_orphaned()

    assert caught.value.code == "interrupted"


def test_a_campaign_that_is_being_stopped_begins_nothing(tmp_path, wardens, monkeypatch, files):
    made = history(tmp_path)
    (tmp_path / "stopping").touch()
    monkeypatch.setenv(STOPPING_VARIABLE, str(tmp_path / "stopping"))

    with pytest.raises(SgmatrixError, match="not begun: the campaign is being stopped"):
        run_launch(made.layout, "tp1", "1")

    assert wardens == []
    assert files(made.layout.root) == ["plan.json"]
