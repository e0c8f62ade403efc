"""Devices for a job that measures itself."""

import json
import os
import threading

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.node import gpus, leased, proc
from sgmatrix.node.launch import OWNER_VARIABLE, STOPPING_VARIABLE
from sgmatrix.node.lease import Lease, try_lease
from sgmatrix.node.leased import end_with_owner, leased_devices

NODE = {"gpus": 4, "idle_memory_mib": 1024}
NOTE = {"campaign": "night", "cell": "node-probe"}
OTHER = {"campaign": "other", "cell": "tp2", "pid": 41}


@pytest.fixture(autouse=True)
def alone(leases, monkeypatch):
    """No Snakemake around, nothing of earlier tests on the node."""
    for name in (OWNER_VARIABLE, STOPPING_VARIABLE, "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(leased, "end_leftovers", lambda _: [])


@pytest.fixture
def empty_gpus(monkeypatch):
    monkeypatch.setattr(gpus, "check_gpus", lambda devices, **_: {"GPU-1": 0})
    monkeypatch.setattr(gpus, "await_drained", lambda *_, **__: gpus.Drained(True, {}, 0.0))


def hold(wanted, waiting=lambda _: None):
    return leased_devices(wanted, node=NODE, stop_s=1.0, note=NOTE, waiting=waiting)


def is_free(device):
    got = try_lease([device], 1, OTHER)
    if isinstance(got, Lease):
        got.release()
        return True
    return False


def test_the_cpu_is_held_while_the_block_runs_and_says_by_whom():
    with hold(0) as devices:
        assert devices == ["cpu"]
        (note,) = try_lease(["cpu"], 1, OTHER)
        assert (note["campaign"], note["cell"], note["pid"]) == ("night", "node-probe", os.getpid())
    assert is_free("cpu")


def test_gpus_are_let_go_of_when_the_block_fails(empty_gpus):
    def fail():
        with hold(2) as devices:
            assert devices == ["gpu-0", "gpu-1"]
            assert not is_free("gpu-1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert is_free("gpu-0") and is_free("gpu-1")


def test_it_waits_for_whom_it_names_once():
    held = try_lease(["cpu"], 1, OTHER)
    said = []

    def told(holders):
        said.append(holders)
        threading.Timer(0.2, held.release).start()

    with hold(0, told) as devices:
        assert devices == ["cpu"]
    assert said == [[OTHER]]


def test_it_does_not_wait_on_for_a_campaign_that_is_stopped(tmp_path, monkeypatch):
    held = try_lease(["cpu"], 1, OTHER)
    marker = tmp_path / "stopping"
    monkeypatch.setenv(STOPPING_VARIABLE, str(marker))
    in_the_end = threading.Timer(10, held.release)
    in_the_end.start()

    with (
        pytest.raises(SgmatrixError, match="not begun: stopped by hand"),
        hold(0, lambda _: marker.write_text("stopped by hand")),
    ):
        pytest.fail("it began")
    in_the_end.cancel()
    held.release()


def test_a_gpu_in_use_and_too_few_gpus_are_disturbances(monkeypatch):
    def busy(*_, **__):
        raise SgmatrixError("gpu_busy", "GPU 1 is used by pid 7")

    monkeypatch.setattr(gpus, "check_gpus", busy)
    with pytest.raises(SgmatrixError, match="used by pid 7"), hold(2):
        pytest.fail("it began")
    assert is_free("gpu-0")

    with pytest.raises(SgmatrixError, match="the campaign needs 5 GPUs, 4 are there"), hold(5):
        pytest.fail("it began")


def test_memory_that_does_not_come_back_is_a_disturbance_that_the_next_holder_reads(
    empty_gpus, monkeypatch
):
    full = gpus.Drained(False, {}, 1.0, "GPU 0 holds 900 MiB")
    monkeypatch.setattr(gpus, "await_drained", lambda *_, **__: full)

    with pytest.raises(SgmatrixError) as caught, hold(1):
        pass
    assert caught.value.code == "drain_failed"
    after = try_lease(["gpu-0"], 1, OTHER)
    assert "node-probe of campaign night did not leave them empty" in after.warning
    after.release()


OWNED = """
import sys, time
from sgmatrix.node.leased import end_with_owner
end_with_owner()
print("waits", flush=True)
time.sleep(60)
"""


def test_the_job_ends_with_its_owner(process, python, monkeypatch):
    owner = process()
    monkeypatch.setenv(OWNER_VARIABLE, json.dumps(proc.identify(owner.pid).record()))
    job = python(OWNED)
    assert job.stdout.readline() == "waits\n"
    assert job.poll() is None

    owner.kill()
    owner.wait()

    assert job.wait(10) == -9


def test_a_job_whose_owner_is_gone_does_not_begin(process, monkeypatch):
    owner = process()
    record = proc.identify(owner.pid).record()
    owner.kill()
    owner.wait()
    monkeypatch.setenv(OWNER_VARIABLE, json.dumps(record))

    with pytest.raises(SgmatrixError, match="Snakemake process is gone"):
        end_with_owner()
