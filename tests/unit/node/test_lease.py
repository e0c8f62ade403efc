"""Leases: all or nothing, never shared, freed by the kernel."""

import fcntl
import json
import os
import signal
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgmatrix.node.lease import Lease, device_names, lease_folder, try_lease

NOTE = {"campaign": "night", "cell": "tp2", "pid": 41}


def take(candidates, wanted, **note):
    """A lease that has to succeed."""
    lease = try_lease(candidates, wanted, {**NOTE, **note})
    assert isinstance(lease, Lease), lease
    return lease


def test_a_lease_takes_the_first_free_devices(leases):
    first = take(["gpu-0", "gpu-1", "gpu-2"], 1)
    second = take(["gpu-0", "gpu-1", "gpu-2"], 2)

    assert (first.devices, second.devices) == (["gpu-0"], ["gpu-1", "gpu-2"])
    first.release()
    second.release()


def test_all_or_nothing(leases):
    held = take(["gpu-1"], 1)

    assert try_lease(["gpu-0", "gpu-1"], 2, NOTE) == [NOTE]
    take(["gpu-0"], 1).release()  # it was not kept
    held.release()
    take(["gpu-0", "gpu-1"], 2).release()


def test_those_who_hold_what_is_missing_are_named(leases):
    one = take(["gpu-0"], 1, cell="a", pid=1)
    two = take(["gpu-1"], 1, cell="b", pid=2)

    blockers = try_lease(["gpu-0", "gpu-1", "gpu-2"], 3, NOTE)

    assert [(note["cell"], note["pid"]) for note in blockers] == [("a", 1), ("b", 2)]
    one.release()
    two.release()


def test_the_note_of_a_former_holder_is_overwritten_whole(leases):
    take(["cpu"], 1, cell="a-cell-with-a-very-long-name").release()
    held = take(["cpu"], 1, cell="b")

    assert try_lease(["cpu"], 1, NOTE) == [{**NOTE, "cell": "b"}]
    held.release()


def test_a_holder_that_left_no_note_still_holds(leases):
    held = take(["cpu"], 1)
    (leases / "cpu.lock").write_text("")

    assert try_lease(["cpu"], 1, NOTE) == []
    held.release()


def test_more_than_there_are_is_refused_with_nobody_to_blame(leases):
    assert try_lease(["gpu-0"], 2, NOTE) == []


HOLDER = """
import json, sys
from sgmatrix.node.lease import try_lease
lease = try_lease(["gpu-0", "gpu-1"], 2, {"cell": "held"})
print(json.dumps(lease.devices), flush=True)
sys.stdin.read()
"""


def test_a_holder_that_is_killed_lets_go_at_once(leases, python):
    holder = python(HOLDER)
    assert json.loads(holder.stdout.readline()) == ["gpu-0", "gpu-1"]
    assert try_lease(["gpu-0"], 1, NOTE) == [{"cell": "held"}]

    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()

    take(["gpu-0", "gpu-1"], 2).release()


def test_a_lease_is_not_inherited_by_what_its_holder_starts(leases, process):
    held = take(["cpu"], 1)
    child = process()  # as a server that outlived its warden
    held.release()

    take(["cpu"], 1).release()
    assert child.poll() is None


def test_a_gate_that_somebody_holds_is_no_wait_without_end(leases):
    with (lease_folder() / "gate.lock").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        assert try_lease(["gpu-0"], 1, NOTE) == []

    lease = try_lease(["gpu-0"], 1, NOTE)
    assert isinstance(lease, Lease)
    lease.release()


def test_one_gpu_has_one_lock_however_it_is_called(leases):
    first = try_lease(["gpu-GPU-aaaa"], 1, NOTE, {"gpu-GPU-aaaa": "gpu-0"})
    assert isinstance(first, Lease)
    assert first.devices == ["gpu-GPU-aaaa"]  # what the server is given

    assert try_lease(["gpu-0"], 1, NOTE) == [NOTE]
    first.release()


@pytest.mark.parametrize(
    ("visible", "want"),
    [("0,1", ["gpu-0", "gpu-1"]), (" 1 ,1,0", ["gpu-1", "gpu-0"]), ("", []), (None, ["gpu-0"])],
)
def test_an_allocation_says_which_gpus_there_are(monkeypatch, visible, want):
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    assert device_names(1, 1) == want


def test_the_lock_folder_is_open_to_all_users_of_the_machine(leases):
    before = os.umask(0o077)
    try:
        take(["cpu"], 1).release()
    finally:
        os.umask(before)

    assert lease_folder() == leases
    assert stat.S_IMODE(leases.stat().st_mode) == 0o1777
    assert stat.S_IMODE((leases / "cpu.lock").stat().st_mode) == 0o666


def test_a_lock_file_that_is_there_is_opened_without_making_it(leases, monkeypatch):
    take(["cpu"], 1).release()
    flags = []
    really_open = os.open
    monkeypatch.setattr(os, "open", lambda *a, **k: flags.append(a[1]) or really_open(*a, **k))

    take(["cpu"], 1).release()

    # fs.protected_regular refuses O_CREAT on another user's file in a folder of this mode
    assert len(flags) == 2
    assert not any(flag & os.O_CREAT for flag in flags)


@pytest.mark.parametrize(
    ("gpus", "total", "visible", "want"),
    [
        (0, 8, None, ["cpu"]),
        (0, 8, "0,1", ["cpu"]),
        (2, 3, None, ["gpu-0", "gpu-1", "gpu-2"]),
        (1, 8, "4,5", ["gpu-4", "gpu-5"]),
    ],
)
def test_candidates_are_the_gpus_that_an_allocation_leaves_us(
    gpus, total, visible, want, monkeypatch
):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    assert device_names(gpus, total) == want


GPUS = [f"gpu-{n}" for n in range(4)]


@given(steps=st.lists(st.integers(-3, 4), max_size=12))
def test_no_device_is_ever_in_two_leases(steps, tmp_path_factory):
    """A positive step takes so many, any other gives the n-th lease back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SGMATRIX_LEASES", str(tmp_path_factory.getbasetemp() / "law-leases"))
        leases = []
        for step in steps:
            if step > 0:
                taken = {device for lease in leases for device in lease.devices}
                answer = try_lease(GPUS, step, NOTE)
                if isinstance(answer, Lease):
                    assert len(answer.devices) == step
                    assert taken.isdisjoint(answer.devices)
                    leases.append(answer)
                else:
                    assert len(taken) + step > len(GPUS)
                    assert len(answer) == len(taken)
            elif leases:
                leases.pop(step % len(leases)).release()
        for lease in leases:
            lease.release()
