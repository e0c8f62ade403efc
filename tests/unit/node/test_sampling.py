"""Telemetry beside a server: taken from its start to its end, and never in its way."""

import json
import os
import signal
import subprocess

from sgmatrix.node import proc
from sgmatrix.node.sampling import Sampling
from sgmatrix.node.telemetry.samples import read_facts, read_samples
from standin.launcher import alive, eventually

TWENTY = {"telemetry": {"hz": 20.0}}


def sampler_of(kept):
    """The sampler's pid, as the kernel knows the children of a warden."""
    with open(f"/proc/{kept.process.pid}/task/{kept.process.pid}/children") as file:  # noqa: PTH123
        children = [int(pid) for pid in file.read().split()]
    found = [pid for pid in children if "sgmatrix.node.sampler" in proc.command_of(pid)]
    return found[0] if found else None


def test_samples_are_taken_until_the_server_is_proven_gone(keep):
    kept = keep(**TWENTY)
    told = kept.ready()
    file = kept.attempt_dir / "telemetry.jsonl"
    eventually(lambda: len(read_samples(file)) > 3, "some samples are there")
    sampler = sampler_of(kept)
    kept.ask(told, ask="stop", why="enough")
    closed = kept.closed()

    assert (closed["reason"], closed["ended_by"]) == (None, "term")
    assert not alive(sampler)
    samples = read_samples(file)
    assert samples[-1].t_s >= closed["times"]["stopping"]
    assert samples[-1].t_s <= closed["times"]["closed"] + 0.1
    assert all(sample.engine["processes"] >= 2 for sample in samples[1:3])
    assert read_facts(file)["cpus"] == len(os.sched_getaffinity(0))


def test_a_sampler_is_no_part_of_the_server_s_tree(keep):
    kept = keep(**TWENTY)
    told = kept.ready()
    eventually(lambda: sampler_of(kept) is not None, "the sampler runs")
    sampler = sampler_of(kept)
    os.kill(sampler, signal.SIGKILL)
    eventually(lambda: not alive(sampler), "it is gone")
    kept.ask(told, ask="stop", why="enough")

    assert kept.closed()["reason"] is None  # the launch went on without telemetry


def test_a_sampler_that_hangs_is_killed_and_fails_nothing(keep):
    kept = keep(**TWENTY)
    told = kept.ready()
    eventually(lambda: sampler_of(kept) is not None, "the sampler runs")
    sampler = sampler_of(kept)
    os.kill(sampler, signal.SIGSTOP)
    kept.ask(told, ask="stop", why="enough")
    closed = kept.closed()

    assert (closed["reason"], closed["ended_by"]) == (None, "term")  # the server was not killed
    assert not alive(sampler)


def test_a_killed_warden_takes_its_sampler_with_it(keep):
    kept = keep(**TWENTY)
    kept.ready()
    eventually(lambda: sampler_of(kept) is not None, "the sampler runs")
    sampler = sampler_of(kept)
    os.kill(sampler, signal.SIGSTOP)  # it cannot see for itself that its warden is gone
    os.kill(kept.process.pid, signal.SIGKILL)
    kept.process.wait()

    eventually(lambda: not alive(sampler), "the kernel ends it")


def test_without_telemetry_there_is_none(keep):
    kept = keep(telemetry={"hz": 0})
    told = kept.ready()
    assert sampler_of(kept) is None
    kept.ask(told, ask="stop", why="enough")
    kept.closed()

    assert not (kept.attempt_dir / "telemetry.jsonl").exists()
    assert json.loads((kept.attempt_dir / "spec.json").read_text())["telemetry"] == {"hz": 0}


class Stuck:
    """A process within a driver call: SIGKILL ends it only when the call returns."""

    def __init__(self):
        self._sleeper = subprocess.Popen(["sleep", "60"])
        self.pid = self._sleeper.pid
        self.waited = []

    def poll(self):
        return None

    def terminate(self):
        pass

    def kill(self):
        pass

    def wait(self, timeout=None):
        self.waited.append(timeout)
        if timeout is not None:
            raise subprocess.TimeoutExpired("sampler", timeout)
        return 0


def test_the_end_of_a_stuck_sampler_is_waited_for_for_a_bounded_time():
    sampling = Sampling()
    stuck = sampling._process = Stuck()
    try:
        sampling.stop()
        assert None not in stuck.waited
    finally:
        os.kill(stuck.pid, 9)
        stuck._sleeper.wait()
