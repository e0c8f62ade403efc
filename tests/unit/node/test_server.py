"""How jobs use a server that a warden keeps, and how they learn that it has ended."""

import json
import os
import signal
import subprocess
import sys

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import write_json
from sgmatrix.core.reasons import REASONS
from sgmatrix.node import proc
from sgmatrix.node import server as server_module
from sgmatrix.node.server import Server, messages, raise_if_environment


@pytest.fixture
def made_up(process, tmp_path):
    """A server and a warden that are helper processes, with a control pipe that a test reads."""
    run_dir, attempt_dir = tmp_path / "run", tmp_path / "attempt"
    run_dir.mkdir()
    attempt_dir.mkdir()
    os.mkfifo(run_dir / "control")
    warden, server = process(), process()
    known = Server(
        warden=proc.identify(warden.pid),
        run_dir=run_dir,
        attempt_dir=attempt_dir,
        port=1,
        nonce="tp1-0123abcd",
        process=proc.identify(server.pid),
    )
    control = os.open(run_dir / "control", os.O_RDWR | os.O_NONBLOCK)
    yield known, warden, server, lambda: os.read(control, 65536).decode().splitlines()
    os.close(control)


def record(reason, detail="why"):
    return {"reason": reason, "detail": detail, "root_line": None}


def talking(code):
    """A process whose words are read as a warden's."""
    return subprocess.Popen(
        [sys.executable, "-S", "-u", "-c", code], stdout=subprocess.PIPE, text=True
    )


def test_what_a_warden_tells_is_heard_until_it_ends():
    with talking('print(\'{"event": "ready"}\\n{"event": "closed"}\')') as warden:
        assert list(messages(warden, stopped_s=600)) == [{"event": "ready"}, {"event": "closed"}]


def test_a_warden_that_stays_stopped_is_killed_and_no_job_waits_for_it(monkeypatch):
    monkeypatch.setattr(server_module, "_LISTEN_S", 0.01)
    with talking('print(\'{"event": "x"}\'); import time; time.sleep(600)') as warden:
        told = messages(warden, stopped_s=0.05)
        assert next(told) == {"event": "x"}
        os.kill(warden.pid, signal.SIGSTOP)

        assert list(told) == []
        assert warden.wait() == -signal.SIGKILL


def test_a_warden_that_was_stopped_for_a_moment_is_heard_again(monkeypatch):
    monkeypatch.setattr(server_module, "_LISTEN_S", 0.01)
    code = 'import signal; signal.sigwait([signal.SIGUSR1]); print(\'{"event": "x"}\')'
    ready = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]); print();"
    with talking(ready + code) as warden:
        assert warden.stdout.readline() == "\n"
        looks = iter([[warden.pid], [], [warden.pid], []])
        monkeypatch.setattr(proc, "stopped", lambda _pids: next(looks, None) or _go(warden))

        assert list(messages(warden, stopped_s=600)) == [{"event": "x"}]


def _go(warden):
    os.kill(warden.pid, signal.SIGUSR1)
    return []


def test_a_server_is_found_through_the_record_of_its_launch(made_up):
    known, *_ = made_up
    live = {
        "warden": known.warden.record(),
        "run_dir": str(known.run_dir),
        "port": 1,
        "nonce": "tp1-0123abcd",
        "server": known.process.record(),
        "devices": ["cpu"],
    }
    published = json.loads(json.dumps({"live": live, "attempt_dir": str(known.attempt_dir)}))

    assert Server.from_record(published) == known


def test_a_job_says_when_it_uses_the_server_and_when_it_has_finished(made_up):
    known, _, _, heard = made_up
    me = proc.identify(os.getpid()).record()

    with known.in_use():
        assert [json.loads(line) for line in heard()] == [{"ask": "use", "job": me}]

    assert [json.loads(line) for line in heard()] == [{"ask": "release", "job": me}]


def test_a_job_that_fails_does_not_say_that_it_has_finished(made_up):
    known, _, _, heard = made_up

    with pytest.raises(ZeroDivisionError), known.in_use():
        _ = 1 / 0

    assert [json.loads(line)["ask"] for line in heard()] == ["use"]


def test_a_warden_that_is_gone_hears_nothing(made_up, tmp_path):
    known, warden, *_ = made_up
    assert known.ask(ask="stop", why="x") is True
    warden.kill()
    warden.wait()

    assert known.ask(ask="stop", why="x") is False
    (tmp_path / "run" / "control").unlink()
    assert known.ask(ask="stop", why="x") is False
    assert known.watch() is None


def test_while_the_warden_lives_nothing_has_closed(made_up):
    known, *_ = made_up
    write_json(known.attempt_dir / "closed.json", record("server_crash"))  # whatever lies there

    assert known.closed(0) is None
    assert known.failure(0) is None


def test_the_closing_record_is_read_once_the_warden_has_ended(made_up):
    known, warden, *_ = made_up
    write_json(known.attempt_dir / "closed.json", record("server_crash"))
    warden.kill()

    assert known.closed(20) == record("server_crash")
    assert known.failure(20) == record("server_crash")


@pytest.mark.parametrize("content", [None, '{"reason": '])
def test_a_warden_that_is_gone_without_its_record_was_interrupted(made_up, content):
    known, warden, *_ = made_up
    if content:
        (known.attempt_dir / "closed.json").write_text(content)
    warden.kill()

    with pytest.raises(SgmatrixError, match="tp1-0123abcd is gone without a closing") as caught:
        known.closed(20)

    assert caught.value.code == "interrupted"


def test_after_the_server_s_death_its_warden_gets_the_time_to_close(made_up):
    known, warden, server, _ = made_up
    write_json(known.attempt_dir / "closed.json", record("oom_runtime"))
    server.kill()
    server.wait()
    # the warden ends only when it hears that somebody waits for it
    os.kill(warden.pid, signal.SIGTERM)

    assert known.failure(0)["reason"] == "oom_runtime"


@pytest.mark.parametrize("reason", [None, *REASONS])
def test_only_a_disturbance_is_raised(reason):
    disturbed = reason is not None and REASONS[reason].kind == "environment"
    if not disturbed:
        assert raise_if_environment(record(reason)) is None
        return

    with pytest.raises(SgmatrixError) as caught:
        raise_if_environment(record(reason))
    assert (caught.value.code, caught.value.facts) == (reason, "why")
