"""Processes by identity, trees and their end, owners of ports; with real processes."""

import json
import os
import signal
import socket
import sys

import pytest

from sgmatrix.node import proc
from sgmatrix.node.proc import Identity
from standin.launcher import alive

SELF = proc.identify(os.getpid())

# --- identity ------------------------------------------------------------------------------------


def test_a_living_process_is_itself(process):
    helper = process()
    known = proc.identify(helper.pid)

    assert known.pid == helper.pid
    assert known.alive()
    assert known == proc.identify(helper.pid)
    assert Identity(**json.loads(json.dumps(known.record()))) == known


def test_a_process_that_ended_is_nobody_even_before_it_is_collected(process):
    helper = process()
    known = proc.identify(helper.pid)
    helper.kill()
    os.waitid(os.P_PID, helper.pid, os.WEXITED | os.WNOWAIT)  # a zombie now

    assert not known.alive()
    assert proc.identify(helper.pid) is None
    assert proc.open_pidfd(known) is None
    helper.wait()
    assert proc.identify(helper.pid) is None


@pytest.mark.parametrize(
    "other",
    [
        Identity(SELF.pid, SELF.ticks - 1, SELF.boot),  # the number went to a later process
        Identity(SELF.pid, SELF.ticks, "another boot"),
        Identity(2**22 + 1, SELF.ticks, SELF.boot),  # above the kernel's largest number
    ],
    ids=["recycled", "rebooted", "no such number"],
)
def test_a_number_alone_is_no_identity(other):
    assert SELF.alive()
    assert not other.alive()
    assert proc.open_pidfd(other) is None
    assert proc.wait_gone(other, 0) is True


def test_a_name_with_brackets_and_blanks_is_read_right(process, tmp_path):
    program = tmp_path / "a) S 1 (b"
    program.symlink_to("/bin/cat")
    helper = process(str(program))

    assert proc.identify(helper.pid).alive()
    assert proc.start_ticks(helper.pid) >= SELF.ticks


def test_waiting_for_an_end_says_whether_it_came(process):
    helper = process()
    known = proc.identify(helper.pid)

    assert proc.wait_gone(known, 0) is False
    helper.kill()
    assert proc.wait_gone(known, 20) is True


def test_waiting_leaves_no_descriptor_behind(process):
    helper = process()
    before = len(os.listdir("/proc/self/fd"))
    known = proc.identify(helper.pid)
    for _ in range(5):
        proc.wait_gone(known, 0)
        proc.open_pidfd(Identity(known.pid, known.ticks - 1, known.boot))

    assert len(os.listdir("/proc/self/fd")) == before


# --- trees ---------------------------------------------------------------------------------------

TREE = """
import os, sys
def fork(*then):
    pid = os.fork()
    if pid == 0:
        for step in then: step()
        sys.stdin.read()
        os._exit(0)
    return pid
say = lambda name, pid: os.write(1, f"{name} {pid}\\n".encode())  # in one piece
say("outer", fork(lambda: say("inner", fork())))
sys.stdin.read()
"""


def test_a_tree_is_all_descendants_deepest_first(python):
    helper = python(TREE)
    pids = dict(helper.stdout.readline().split() for _ in range(2))
    outer, inner = int(pids["outer"]), int(pids["inner"])

    assert proc.children(helper.pid) == [outer]
    assert proc.tree(helper.pid) == [inner, outer]
    assert proc.tree(outer) == [inner]
    assert proc.tree(inner) == []
    helper.kill()
    os.kill(outer, signal.SIGKILL)
    os.kill(inner, signal.SIGKILL)


def test_a_process_that_is_gone_has_no_children():
    assert proc.children(2**22 + 1) == []


STORM = """
import os
print("up", flush=True)
while True:
    for _ in range(4):
        if os.fork() == 0:
            if os.fork() == 0:
                os._exit(0)
            os.wait()
            os._exit(0)
    for _ in range(4):
        os.wait()
"""


def test_children_that_vanish_while_we_look_disturb_nobody(python):
    storm = python(STORM)
    storm.stdout.readline()

    trees = [proc.tree(storm.pid) for _ in range(600)]  # one in a hundred used to raise

    assert any(trees)


# --- the end of a tree ---------------------------------------------------------------------------

# A sub-reaper, as the warden is: starts a child, waits for its words, and ends the tree.
REAPER = """
import ctypes, json, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
from sgmatrix.node import proc
grace_s, code, words, orphans = float(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
seen = []
if code:
    child = subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE, text=True)
    seen = [child.pid, *(int(child.stdout.readline()) for _ in range(words))]
    if orphans:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
statuses = {}
how = proc.end_tree(grace_s, statuses)
statuses = {seen.index(pid): status for pid, status in statuses.items()}
print(json.dumps({"how": how, "seen": seen, "statuses": statuses, "left": proc.tree(os.getpid())}))
"""

OBEDIENT = "import signal; print(0, flush=True); signal.pause()"
IN_ORDER = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print(0, flush=True)
signal.pause()
"""
DEAF = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(0, flush=True)
while True: signal.pause()
"""
# Ends its own child, as a server ends its ranks, and says whether that one was left to it.
ORDERLY = """
import os, signal, sys
inner = os.fork()
if inner == 0:
    while True: signal.pause()
def end(*_):
    os.kill(inner, signal.SIGKILL)
    sys.exit(0 if os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]) == -signal.SIGKILL else 1)
signal.signal(signal.SIGTERM, end)
print(inner, flush=True)
while True: signal.pause()
"""
# Its child makes a session of its own, says its number, and outlives it.
ESCAPING = """
import os, signal, sys
if {all_deaf}: signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if {deaf}: signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(os.getpid(), flush=True)
    while True: signal.pause()
{then}
"""


def end(python, grace_s, code, *, words=1, orphans=""):
    helper = python(REAPER, str(grace_s), code, str(words), orphans)
    said = json.loads(helper.communicate()[0])
    assert said["left"] == []
    assert not any(alive(pid) for pid in said["seen"] if pid)
    return said


def test_without_children_there_is_nothing_to_end(python):
    said = end(python, 5, "", words=0)

    assert (said["how"], said["statuses"]) == ("none", {})


@pytest.mark.parametrize(("code", "status"), [(OBEDIENT, -signal.SIGTERM), (IN_ORDER, 7)])
def test_a_child_that_obeys_gets_its_time_and_its_exit_code_is_kept(python, code, status):
    said = end(python, 20, code)

    assert said["how"] == "term"
    assert said["statuses"]["0"] == status


def test_the_children_of_a_child_are_left_to_it(python):
    said = end(python, 20, ORDERLY)

    assert (said["how"], said["statuses"]) == ("term", {"0": 0})


def test_a_child_that_ignores_the_signal_is_killed_after_the_grace(python):
    said = end(python, 0.1, DEAF)

    assert said["how"] == "kill"
    assert said["statuses"]["0"] == -signal.SIGKILL


@pytest.mark.parametrize(
    ("deaf", "how", "status"), [(False, "term", -signal.SIGTERM), (True, "kill", -signal.SIGKILL)]
)
def test_an_orphan_in_a_session_of_its_own_is_ended_too(python, deaf, how, status):
    code = ESCAPING.format(deaf=deaf, all_deaf=False, then="sys.exit(3)")
    said = end(python, 20 if how == "term" else 0.1, code, orphans="yes")

    assert said["how"] == how
    assert said["statuses"] == {"0": 3, "1": status}


def test_a_deaf_child_and_its_deaf_child_in_another_session_are_both_killed(python):
    then = "while True: signal.pause()"
    said = end(python, 0.1, ESCAPING.format(deaf=True, all_deaf=True, then=then))

    assert said["how"] == "kill"
    assert said["statuses"] == {"0": -signal.SIGKILL, "1": -signal.SIGKILL}


def test_nobody_but_descendants_is_touched(python, process):
    bystander = process()
    end(python, 0.1, DEAF)

    assert bystander.poll() is None


# --- ports ---------------------------------------------------------------------------------------


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_the_owner_of_a_listening_port_is_found(listening):
    inodes = proc.listening_inodes(listening)

    assert len(inodes) == 1
    assert os.getpid() in proc.owners(inodes)
    assert proc.owners(inodes, [os.getpid()]) == {os.getpid()}


def test_another_process_does_not_own_it(listening, process):
    assert proc.owners(proc.listening_inodes(listening), [process().pid]) == set()


def test_a_connection_through_a_port_is_no_listener(listening):
    with socket.create_connection(("127.0.0.1", listening)) as client:
        assert proc.listening_inodes(client.getsockname()[1]) == set()
        assert len(proc.listening_inodes(listening)) == 1


def test_a_port_on_another_address_of_the_machine_counts_as_taken():
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        assert len(proc.listening_inodes(server.getsockname()[1])) == 1


def test_a_command_is_named_for_messages(process):
    code = "print(0, flush=True); input()"
    helper = process(sys.executable, "-S", "-c", code, "x" * 500)
    helper.stdout.readline()

    assert proc.command_of(helper.pid).startswith(f"{sys.executable} -S -c {code} xxx")
    assert len(proc.command_of(helper.pid)) == 120
    assert proc.command_of(2**22 + 1) == "?"
