"""What a killed warden has left behind is found by its token and ended; nothing else is touched."""

import os
import signal
import subprocess
import sys

import pytest

from sgmatrix.core.environment import TOKEN_VARIABLE
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.node import leftovers, proc
from sgmatrix.node.leftovers import end_leftovers, find_leftovers, token_of

SLEEPER = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPER}"


@pytest.fixture
def dead():
    """The identity of a warden that is gone."""
    process = subprocess.Popen([sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE)
    identity = proc.identify(process.pid)
    process.kill()
    process.communicate()
    return identity


@pytest.fixture
def start():
    """Start a process with a token, in a session of its own, as an escaped child is."""
    started = []

    def start(token, code=SLEEPER):
        process = subprocess.Popen(
            [sys.executable, "-c", code, "sglang.launch_server"],
            env={**os.environ, **({} if token is None else {TOKEN_VARIABLE: token})},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout.readline() == b"up\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def pids():
    return {one.process.pid for one in find_leftovers()}


def test_a_process_of_a_warden_that_is_gone_is_found_and_ended(start, dead):
    left = start(token_of("0123", dead))
    assert pids() == {left.pid}

    ended = end_leftovers(5)

    assert left.wait(5) == -signal.SIGTERM
    assert ended == [f"pid {left.pid}: {sys.executable} -c {SLEEPER} sglang.launch_server"[:130]]
    assert pids() == set()


def test_one_that_ignores_the_signal_is_killed(start, dead):
    left = start(token_of("0123", dead), STUBBORN)

    assert len(end_leftovers(0.05)) == 1
    assert left.wait(5) == -signal.SIGKILL


def test_a_server_whose_warden_lives_is_left_alone(start):
    start(token_of("0123", proc.identify(os.getpid())))

    assert pids() == set()
    assert end_leftovers(0) == []


def test_a_warden_whose_number_was_given_to_another_process_is_gone(start):
    me = proc.identify(os.getpid())
    left = start(token_of("0123", proc.Identity(me.pid, me.ticks - 1, me.boot)))

    assert pids() == {left.pid}


@pytest.mark.parametrize(
    "token",
    [
        None,
        "",
        "0123",
        "0123.1.2",
        "a.1.2.boot",
        "a.x.2.boot.4",
        "a.1.x.boot.4",
        "a.1.2.b.4.5",
        "a.1.2.boot.4",
    ],  # the last: of another namespace
)
def test_what_looks_like_ours_and_carries_no_token_of_ours_is_left_alone(start, token):
    decoy = start(token)

    assert pids() == set()
    assert end_leftovers(0) == []
    assert decoy.poll() is None


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process of another user")
def test_a_process_of_another_user_is_left_alone(dead):
    environment = {TOKEN_VARIABLE: token_of("0123", dead)}
    command = ["/bin/sh", "-c", "echo up; read line"]  # that user may not see our interpreter
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, user=65534, **pipes) as process:
        assert process.stdout.readline() == b"up\n"
        assert pids() == set()
        process.communicate(b"\n")


def test_what_does_not_end_is_named(start, dead, monkeypatch):
    left = start(token_of("0123", dead))
    monkeypatch.setattr(leftovers, "_signal_and_wait", lambda *_: None)  # a world that disobeys

    with pytest.raises(SgmatrixError) as caught:
        end_leftovers(0, 0)

    assert caught.value.code == "leftover_process"
    assert f"does not end: pid {left.pid}: " in caught.value.facts
