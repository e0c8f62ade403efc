"""A warden's whole life with a real server process, the stand-in: from lease to proven end."""

import contextlib
import json
import os
import re
import signal
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from sgmatrix.core.environment import TOKEN_VARIABLE
from sgmatrix.core.redact import redact
from sgmatrix.node import proc
from sgmatrix.node.lease import Lease, try_lease
from sgmatrix.node.leftovers import token_of
from sgmatrix.node.preflight import port_holders
from sgmatrix.node.sampling import Sampling
from sgmatrix.node.wakeups import Closing
from sgmatrix.node.warden import Warden
from sgmatrix.node.wire import request
from standin.launcher import DEADLINE_S, Standin, alive, eventually, free_port


def fault(text):
    return {"standin_fault": text}


def generate(port):
    body = {"input_ids": [5, 6], "sampling_params": {"max_new_tokens": 1}}
    return request(port, "POST", "/generate", body, timeout_s=20)


def lease_is_free():
    answer = try_lease(["cpu"], 1, {"cell": "another"})
    if isinstance(answer, Lease):
        answer.release()
        return True
    return False


# --- ready ---------------------------------------------------------------------------------------


def test_a_server_is_told_ready_only_after_every_proof_and_with_its_times(keep):
    kept = keep()
    told = kept.ready()

    assert re.fullmatch(r"tp1-[0-9a-f]{8}", told["nonce"])
    assert told["info"]["served_model_name"] == told["nonce"]
    assert told["info"]["version"] == "0.5.23+standin"
    assert told["devices"] == ["cpu"]
    names = ["asked", "leased", "started", "port_open", "healthy", "first_token", "ready"]
    assert sorted(told["times"], key=told["times"].get) == names
    assert told["argv"][:3] == [kept.spec["cell"]["python"], "-m", "sglang.launch_server"]
    assert told["argv"][-6:] == [
        *("--host", "127.0.0.1"),
        *("--port", str(told["port"])),
        *("--served-model-name", told["nonce"]),
    ]
    assert proc.Identity(**told["server"]).alive()
    assert proc.owners(proc.listening_inodes(told["port"])) >= {told["server"]["pid"]}
    assert [event["event"] for event in kept.events()] == ["starting", "ready"]
    assert not lease_is_free()


def test_the_server_runs_in_a_session_and_a_folder_of_its_own_and_carries_the_token(keep):
    kept = keep()
    pid = kept.ready()["server"]["pid"]

    process = Path(f"/proc/{pid}")
    entries = (process / "environ").read_text().split("\0")
    environment = dict(entry.partition("=")[::2] for entry in entries)
    assert os.getsid(pid) == pid
    assert (process / "cwd").readlink() == kept.run_dir / "cwd"
    # and the token says who keeps the server
    assert environment[TOKEN_VARIABLE] == token_of(kept.spec["token"], kept.identity)
    assert environment["PYTHONPATH"] == kept.spec["cell"]["env"]["PYTHONPATH"]


def test_what_it_was_to_start_is_written_down_without_the_token(keep):
    kept = keep()
    kept.ready()

    spec = json.loads((kept.attempt_dir / "spec.json").read_text())
    assert spec["token"] == "***"
    assert spec["cell"] == kept.spec["cell"]


# --- stop ----------------------------------------------------------------------------------------


def test_a_server_that_is_asked_to_stop_is_proven_gone_before_the_lease_is_free(keep):
    kept = keep()
    told = kept.ready()
    kept.ask(told, ask="stop", why="the launch is finished")
    closed = kept.closed()

    assert (closed["reason"], closed["detail"]) == (None, "the launch is finished")
    assert (closed["server_exit_code"], closed["ended_by"]) == (0, "term")
    assert closed["port_free"] is True
    assert closed["harmless"] == {}
    assert kept.record() == closed
    assert not alive(told["server"]["pid"])
    assert proc.listening_inodes(told["port"]) == set()
    assert not kept.run_dir.exists()
    assert lease_is_free()
    assert [event["event"] for event in kept.events()] == ["starting", "ready", "stopping"]


def test_a_server_that_ignores_the_signal_is_killed_at_the_deadline(keep):
    kept = keep(fault("ignore_sigterm"), {"stop_s": 0.2})
    told = kept.ready()
    kept.ask(told, ask="stop", why="x")
    closed = kept.closed()

    assert (closed["reason"], closed["ended_by"]) == (None, "kill")
    assert closed["server_exit_code"] == -signal.SIGKILL
    assert not alive(told["server"]["pid"])


def test_a_child_that_escaped_into_its_own_session_is_gone_too(keep, tmp_path):
    events = tmp_path / "truth.jsonl"
    kept = keep({**fault("escaped_child:600"), "standin_events": str(events)}, {"stop_s": 0.2})
    told = kept.ready()
    lines = map(json.loads, events.read_text().splitlines())
    escaped = next(line["pid"] for line in lines if line["event"] == "escaped")
    assert alive(escaped)

    kept.ask(told, ask="stop", why="x")
    closed = kept.closed()

    assert (closed["reason"], closed["ended_by"]) == (None, "kill")  # it ignores SIGTERM
    assert closed["server_exit_code"] == 0  # the server itself ended in order
    assert not alive(escaped)
    assert proc.listening_inodes(told["port"]) == set()


@pytest.mark.parametrize(
    ("how", "inodes", "reason"),
    [("term", set(), None), ("term", {"99"}, "drain_failed"), ("survivors", set(), "drain_failed")],
)
def test_what_does_not_go_away_is_a_failed_drain(monkeypatch, tmp_path, how, inodes, reason):
    warden = object.__new__(Warden)  # its closing alone, in a world that does not obey
    warden.times, warden.limits, warden.leftovers = {"started": 0.0}, {"stop_s": 1}, []
    warden.gpu_baseline, warden.pids, warden.sampling = {}, set(), Sampling()
    warden.lease = SimpleNamespace(note_failed_drain=lambda _note, detail: noted.append(detail))
    warden.spec = {"campaign": "c", "cell": {"id": "tp1"}, "node": {"min_free_disk_mib": 0}}
    noted = []
    warden.server, warden.port, warden.attempt_dir = SimpleNamespace(pid=41), 31000, tmp_path
    monkeypatch.setattr(warden, "_emit", lambda *_, **__: None)
    monkeypatch.setattr(proc, "end_tree", lambda _grace_s, _statuses: how)
    monkeypatch.setattr(proc, "listening_inodes", lambda _port: inodes)
    monkeypatch.setattr(proc, "owners", lambda _inodes, _pids: {41})

    closed = warden.close(None, "asked to")

    assert (closed["reason"], closed["ended_by"]) == (reason, how)
    assert closed["port_free"] is not bool(inodes)
    assert reason is None or "port 31000 free: " in closed["detail"]
    assert noted == ([closed["detail"]] if reason else [])  # word for the next holder


def test_a_command_line_is_told_without_its_secrets():
    argv = ["/py", "--api-key", "SENTINEL", "--tokenizer-path", "/m", "--host", "127.0.0.1"]

    assert redact(argv) == [*argv[:2], "***", *argv[3:]]


# --- the server's own end ------------------------------------------------------------------------


def test_a_server_that_dies_while_it_serves_is_recorded_with_its_root_line(keep):
    kept = keep(fault("die_after:1"))  # the probe's own token is request 1
    told = kept.ready()

    with pytest.raises(OSError, match=r"Remote end closed|Connection reset"):
        generate(told["port"])
    closed = kept.closed()

    root = "AttributeError: 'ForwardMetadata' object has no attribute 'page_table_1_flattened'"
    assert (closed["reason"], closed["root_line"]) == ("server_crash", root)
    assert kept.log().splitlines()[closed["root_line_number"] - 1] == root
    assert closed["server_exit_code"] == -signal.SIGKILL
    assert re.fullmatch(
        r"the engine exited with code -9 after \d+\.\d s, while it served", closed["detail"]
    )
    assert kept.record() == closed


def test_a_flag_that_the_engine_does_not_know_is_the_configuration_s_fault(keep):
    closed = keep({"no_such_flag": 1}).closed()

    root = "sglang serve: error: unrecognized arguments: --no-such-flag 1"
    assert (closed["reason"], closed["root_line"]) == ("config_rejected", root)
    assert closed["server_exit_code"] == 2
    assert closed["detail"].endswith("before it was ready")
    assert closed["ended_by"] == "none"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("oom_weights", "oom_weights"),
        ("oom_kv", "oom_kv_init"),
        ("nccl_error", "nccl_error"),
        ("kernel_unsupported", "kernel_unsupported"),
        ("die_before_ready", "server_crash"),
        ("internal_port_in_use", "leftover_process"),
    ],
)
def test_a_server_that_dies_at_start_is_classed_by_its_log(keep, name, reason):
    kept = keep(fault(name))
    closed = kept.closed()

    assert closed["reason"] == reason
    assert kept.log().splitlines()[closed["root_line_number"] - 1] == closed["root_line"]
    assert "ready" not in closed["times"]


def test_harmless_errors_are_counted_and_end_nothing(keep):
    kept = keep(fault("autotune_noise:160"))
    kept.ask(kept.ready(), ask="stop", why="x")
    closed = kept.closed()

    assert closed["harmless"] == {"autotune_skipped": 160}
    assert (closed["reason"], closed["root_line"]) == (None, None)


# --- deadlines -----------------------------------------------------------------------------------


def test_a_server_that_never_becomes_ready_is_ended_at_the_deadline(keep):
    closed = keep(fault("never_ready"), {"start_s": 0.2}).closed()

    assert (closed["reason"], closed["detail"]) == ("start_timeout", "not ready after 0.2 s")
    assert closed["server_exit_code"] == 0


def test_a_server_that_falls_silent_while_it_starts_is_ended_as_stalled(keep):
    closed = keep(fault("never_opens_port"), {"stall_s": 0.2}).closed()

    assert (closed["reason"], closed["detail"]) == ("start_stalled", "no log line for 0.2 s")


def test_a_server_that_no_job_uses_is_ended(keep):
    kept = keep(deadlines={"idle_s": 0.2})
    told = kept.ready()
    kept.ask(told, ask="release", job=proc.identify(os.getpid()).record())
    closed = kept.closed()

    assert closed["reason"] == "interrupted"
    assert closed["detail"] == "no job used the server for 0.2 s"
    assert closed["server_exit_code"] == 0


def test_a_server_that_a_job_uses_is_never_idle(monkeypatch):
    warden = object.__new__(Warden)  # its loop alone
    warden.pids = set()
    warden.limits, warden.server = {"idle_s": 0.1}, SimpleNamespace(pid=os.getpid())
    monkeypatch.setattr(warden, "_refuse_dead", lambda: None)
    waits = []

    def wait(timeout_s):
        waits.append(timeout_s)
        if len(waits) == 3:
            raise Closing(None, "asked to")

    warden.wakeups = SimpleNamespace(
        wait=wait, idle_s=lambda: 0.0, watch_workers=lambda _workers: None
    )
    with pytest.raises(Closing) as ended:
        warden.serve()
    assert ended.value.args == (None, "asked to")

    warden.wakeups.idle_s, waits[:] = lambda: 0.2, []
    with pytest.raises(Closing) as ended:
        warden.serve()
    assert ended.value.args == ("interrupted", "no job used the server for 0.1 s")


# --- jobs ----------------------------------------------------------------------------------------


def test_a_job_that_ends_without_a_word_ends_the_server_and_stops_the_campaign(
    keep, process, tmp_path
):
    job = process()
    marker = tmp_path / "stopping"
    kept = keep(job=proc.identify(job.pid).record(), stopping=str(marker))
    kept.ready()
    job.kill()
    closed = kept.closed()

    detail = f"the job that used the server ended, pid {job.pid}"
    assert (closed["reason"], closed["detail"]) == ("interrupted", detail)
    assert marker.read_text() == detail + "\n"


def test_the_first_disturbance_is_the_one_that_the_campaign_names(keep, process, tmp_path):
    job = process()
    (tmp_path / "stopping").write_text("gpu_busy: first\n")
    kept = keep(job=proc.identify(job.pid).record(), stopping=str(tmp_path / "stopping"))
    kept.ready()
    job.kill()

    assert kept.closed()["reason"] == "interrupted"
    assert (tmp_path / "stopping").read_text() == "gpu_busy: first\n"


def test_a_job_that_ended_before_it_could_use_the_server_ends_it_too(keep, process):
    job = process()
    gone = proc.identify(job.pid).record()
    job.kill()
    job.wait()
    kept = keep()
    kept.ask(kept.ready(), ask="use", job=gone)

    assert kept.closed()["detail"] == f"the job that was to use the server ended, pid {job.pid}"


def test_a_job_that_released_the_server_may_end_while_the_next_one_takes_it(keep, process):
    first, second = process(), process()
    kept = keep(deadlines={"idle_s": 0.2}, job=proc.identify(first.pid).record())
    server = kept.server(kept.ready())
    os.kill(kept.process.pid, signal.SIGSTOP)  # so that it finds all of this at once
    assert server.ask(ask="release", job=proc.identify(first.pid).record())
    assert server.ask(ask="use", job=proc.identify(second.pid).record())
    first.kill()
    first.wait()
    os.kill(kept.process.pid, signal.SIGCONT)

    assert generate(server.port)[0] == 200
    assert server.ask(ask="release", job=proc.identify(second.pid).record())
    assert kept.closed()["detail"] == "no job used the server for 0.2 s"


# --- owners --------------------------------------------------------------------------------------


def test_a_server_does_not_outlive_its_owner(keep, process):
    owner = process()
    kept = keep(owner=proc.identify(owner.pid).record())
    told = kept.ready()
    owner.kill()
    closed = kept.closed()

    assert closed["reason"] == "interrupted"
    assert closed["detail"] == "the Snakemake process is gone"
    assert kept.record()["reason"] == "interrupted"
    assert not alive(told["server"]["pid"])
    assert lease_is_free()


def test_nothing_is_started_for_an_owner_that_is_gone_or_whose_number_was_given_away(keep):
    me = proc.identify(os.getpid()).record()
    kept = keep(owner={**me, "ticks": me["ticks"] - 1})

    assert kept.closed()["detail"] == "the Snakemake process is gone"


def test_a_launch_job_that_is_gone_ends_a_start(keep, process):
    job = process()
    kept = keep(fault("never_ready"), job=proc.identify(job.pid).record())
    eventually(kept.events, "the server is starting")
    job.kill()
    closed = kept.closed()

    detail = f"the job that used the server ended, pid {job.pid}"
    assert (closed["reason"], closed["detail"]) == ("interrupted", detail)


def test_a_worker_that_somebody_stopped_is_seen_long_before_any_deadline(keep):
    kept = keep(deadlines={"stop_s": 0.2, "idle_s": 10 * DEADLINE_S})
    (worker,) = proc.children(kept.ready()["server"]["pid"])
    os.kill(worker, signal.SIGSTOP)

    closed = kept.closed()

    why = f"the server was stopped by a signal, pids [{worker}]"
    assert (closed["reason"], closed["detail"]) == ("interrupted", why)
    assert not alive(worker)


@pytest.mark.parametrize("resumed", [False, True])
def test_a_server_that_somebody_stopped_for_a_while_is_disturbed(keep, resumed):
    kept = keep(deadlines={"stop_s": 0.2})
    pid = kept.ready()["server"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    if resumed:
        eventually(lambda: proc.stopped([pid]) or not alive(pid), "it is stopped")
        os.kill(pid, signal.SIGCONT)

    closed = kept.closed()

    assert closed["reason"] == "interrupted"
    assert closed["detail"].startswith("the server was stopped by a signal")
    assert not alive(pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_server_and_warden_in_order(keep, number):
    kept = keep()
    told = kept.ready()
    os.kill(kept.process.pid, number)
    closed = kept.closed()

    assert (closed["reason"], closed["detail"]) == ("interrupted", f"signal {int(number)}")
    assert closed["server_exit_code"] == 0
    assert not alive(told["server"]["pid"])


def test_what_a_killed_warden_left_behind_is_ended_by_the_next_one_and_named(keep, tmp_path):
    events = tmp_path / "truth.jsonl"
    kept = keep({**fault("escaped_child:600"), "standin_events": str(events)})
    kept.ready()
    lines = map(json.loads, events.read_text().splitlines())
    escaped = next(line["pid"] for line in lines if line["event"] == "escaped")
    os.kill(kept.process.pid, signal.SIGKILL)
    kept.process.wait()
    assert alive(escaped)

    following = keep(deadlines={"stop_s": 0.2})
    told = following.ready()

    assert not alive(escaped)
    (event,) = [e for e in following.events() if e["event"] == "leftovers"]
    assert event["ended"][0].startswith(f"pid {escaped}: ")
    following.ask(told, ask="stop", why="x")
    assert following.closed()["leftovers_ended"] == event["ended"]


def test_a_warden_that_is_killed_takes_its_server_with_it_and_frees_the_lease(keep):
    kept = keep()
    told = kept.ready()
    os.kill(kept.process.pid, signal.SIGKILL)
    kept.process.wait()

    eventually(lambda: not alive(told["server"]["pid"]), "the kernel ends the server")
    assert lease_is_free()
    assert not (kept.attempt_dir / "closed.json").exists()


# --- strangers and a busy machine ----------------------------------------------------------------


def test_a_server_of_another_name_is_not_ours(keep):
    closed = keep(fault("wrong_model:glm")).closed()

    assert closed["reason"] == "wrong_server"
    assert re.fullmatch(r"served_model_name is 'glm', not 'tp1-[0-9a-f]{8}'", closed["detail"])


def test_a_server_that_runs_with_another_value_is_a_mismatch(keep):
    closed = keep(
        {**fault("wrong_flag:max_running_requests=4"), "max_running_requests": 8}
    ).closed()

    assert closed["reason"] == "flag_mismatch"
    assert json.loads(closed["detail"]) == {"max_running_requests": [8, 4]}


def test_flags_of_every_kind_are_recognised_in_what_the_server_reports(keep):
    flags = {
        "mem_fraction_static": 0.9,
        "disable_radix_cache": True,
        "enable_metrics": False,
        "dtype": None,
        "attention_backend": "triton",
        "json_model_override_args": {"num_hidden_layers": 2},
    }

    assert keep(flags).ready()["info"]["mem_fraction_static"] == 0.9


def test_a_port_that_a_stranger_holds_stops_the_launch_and_harms_nobody(keep, tmp_path):
    stranger = Standin(tmp_path, (), {}, free_port()).wait_ready()
    try:
        kept = keep(server={"host": "127.0.0.1", "port": stranger.port})
        closed = kept.closed()

        assert closed["reason"] == "port_in_use"
        assert f"port {stranger.port} is taken by pid {stranger.process.pid}: " in closed["detail"]
        assert not kept.attempt_dir.exists()
        assert stranger.generate()[0] == 200
    finally:
        assert stranger.stop() == 0


def test_an_interpreter_that_vanished_since_the_plan_is_the_environment_s_fault(keep):
    kept = keep(cell={"python": "/nowhere/python"})
    closed = kept.closed()

    assert closed["reason"] == "engine_missing"
    assert closed["detail"] == "/nowhere/python: No such file or directory; fix: make setup"


def test_more_gpus_than_there_are_is_no_wait_without_end(keep, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,0")
    closed = keep(cell={"gpus": 2}, node={"gpus": 2, "min_free_disk_mib": 1}).closed()

    assert closed["reason"] == "gpu_busy"
    assert "the cell needs 2 GPUs, 1 are there: ['gpu-0']" in closed["detail"]


@pytest.mark.parametrize(
    "message", ["half a line", "[]", '{"ask": 1}', '{"no": "ask"}', "x" * 70000]
)
def test_what_is_no_message_is_passed_over(keep, message):
    kept = keep()
    told = kept.ready()
    pipe = os.open(kept.run_dir / "control", os.O_WRONLY)
    os.write(pipe, f"{message}\n".encode())
    os.close(pipe)

    kept.ask(told, ask="stop", why="asked to")

    assert kept.closed()["reason"] is None


def test_a_stranger_s_port_is_no_failed_drain(keep, tmp_path):
    kept = keep()
    told = kept.ready()
    kept.ask(told, ask="stop", why="x")
    assert kept.closed()["port_free"]
    with socket.socket() as thief:
        thief.bind(("127.0.0.1", 0))
        thief.listen()
        warden = object.__new__(Warden)
        warden.port, warden.pids = thief.getsockname()[1], {1}
        assert not warden._holds_port()
        warden.pids = {os.getpid()}
        assert warden._holds_port()


def test_a_full_disk_stops_the_launch_and_leaves_no_attempt(keep):
    kept = keep(node={"gpus": 0, "min_free_disk_mib": 2**40})
    closed = kept.closed()

    assert closed["reason"] == "interrupted"
    assert f"node.min_free_disk_mib = {2**40}; fix: make room there" in closed["detail"]
    assert not kept.attempt_dir.exists()


def test_another_version_than_was_planned_is_a_mismatch(keep):
    closed = keep(fault("wrong_version:0.5.8")).closed()

    assert closed["reason"] == "flag_mismatch"
    assert json.loads(closed["detail"]) == {"engine version": ["0.5.23+standin", "0.5.8"]}


def test_what_an_earlier_server_did_not_free_is_said_with_the_refusal(keep):
    lease = try_lease(["cpu"], 1, {"campaign": "other", "cell": "tp9", "pid": 41})
    assert isinstance(lease, Lease)
    lease.note_failed_drain({"campaign": "other", "cell": "tp9"}, "GPU memory not back")
    lease.release()

    closed = keep(cell={"min_free_memory_mb": 10**9}).closed()

    assert closed["reason"] == "gpu_busy"
    assert "; tp9 of campaign other did not leave them empty: GPU memory" in closed["detail"]
    # it is said once: the next holder notes itself
    assert "did not leave" not in keep(cell={"min_free_memory_mb": 10**9}).closed()["detail"]


def test_a_front_end_that_outlives_its_scheduler_is_a_crash_with_the_root_line(keep, monkeypatch):
    kept = keep(fault("scheduler_dies_after:1"))  # the readiness probe is the first request
    told = kept.ready()
    with contextlib.suppress(OSError):
        request(told["port"], "POST", "/generate", {"input_ids": [1]}, timeout_s=1)

    closed = kept.closed()

    assert closed["reason"] == "server_crash"
    assert closed["detail"].endswith("; the front end went on answering")
    assert closed["root_line"].startswith("AttributeError: ")
    assert not alive(told["server"]["pid"])


def test_a_held_internal_port_is_a_leftover_named_with_its_owner(keep, tmp_path):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        line = f"RuntimeError: rpc_port {port} is used"
        assert port_holders(line) == f"; port {port} is held by pid {os.getpid()}: " + (
            proc.command_of(os.getpid())
        )
    assert port_holders(f"rpc_port {port} is used") == ""
    assert keep(fault("internal_port_in_use")).closed()["reason"] == "leftover_process"


def test_too_little_memory_stops_the_launch_and_leaves_no_attempt(keep):
    kept = keep(cell={"min_free_memory_mb": 10**9})
    closed = kept.closed()

    assert closed["reason"] == "gpu_busy"
    assert "the engine needs 1000000000; fix: " in closed["detail"]
    assert not kept.attempt_dir.exists()
    assert not kept.run_dir.exists()
    assert [event["event"] for event in kept.events()] == []


def test_an_attempt_that_is_there_already_is_not_touched(keep, tmp_path, files):
    (tmp_path / "history" / "1").mkdir(parents=True)
    (tmp_path / "history" / "1" / "teardown.json").write_text("{}")

    closed = keep().closed()

    assert closed["reason"] == "interrupted"
    assert files(tmp_path / "history") == ["1/teardown.json"]


# --- waiting for the lease -----------------------------------------------------------------------


@pytest.fixture
def lease_taken(leases):
    lease = try_lease(["cpu"], 1, {"campaign": "other", "cell": "tp9", "pid": 41})
    yield lease
    lease.release()


def test_it_waits_for_its_lease_says_for_whom_and_goes_on(keep, lease_taken):
    kept = keep()
    (waiting,) = eventually(kept.events, "it says that it waits")
    assert (waiting["event"], waiting["cell"]) == ("waiting", "tp1")
    assert waiting["holders"] == [{"campaign": "other", "cell": "tp9", "pid": 41}]

    lease_taken.release()

    assert kept.ready()["devices"] == ["cpu"]


def test_a_campaign_that_is_being_stopped_ends_the_wait(keep, lease_taken, tmp_path):
    marker = tmp_path / "stopping"
    kept = keep(stopping=str(marker))
    eventually(kept.events, "it says that it waits")
    marker.touch()
    closed = kept.closed()

    assert closed["reason"] == "interrupted"
    assert closed["detail"] == "the campaign is being stopped"
    assert not kept.attempt_dir.exists()


def test_a_launch_job_that_is_gone_ends_the_wait(keep, lease_taken, process):
    job = process()
    kept = keep(job=proc.identify(job.pid).record())
    eventually(kept.events, "it says that it waits")
    job.kill()

    assert kept.closed()["detail"] == f"the job that used the server ended, pid {job.pid}"
    assert not kept.attempt_dir.exists()
