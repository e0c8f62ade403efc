"""The sampler as a process: its lines, its end, and whose CPU time it says it was."""

import contextlib
import itertools
import json
import os
import select
import shutil
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import write_json
from sgmatrix.node import proc, sampler
from sgmatrix.node.telemetry.gpus import Gpus
from sgmatrix.node.telemetry.procfs import TICKS_PER_S
from sgmatrix.node.telemetry.procfs import process as stat_of
from sgmatrix.node.telemetry.samples import read_errors, read_facts, read_samples
from standin.launcher import DEADLINE_S, eventually
from standin.nvml import Module, NVMLError_GpuIsLost

WARDEN = """
import subprocess, sys
children = [subprocess.Popen([sys.executable, "-P", "-m", "sgmatrix.node.sampler", sys.argv[1]])]
print(children[0].pid, flush=True)
for line in sys.stdin:
    children.append(subprocess.Popen([sys.executable, "-S", "-c", line.replace(";;", "\\n")]))
    print(children[-1].pid, flush=True)
"""
"""Starts the sampler, then a child for each line that it is given; collects none of them."""
PARENT = WARDEN.replace("children = [", "children = []  # [").replace("children[0].pid", "0")
"""The same without a sampler."""
BURN = "while True: pass"
SPAWN = """
import subprocess, sys
burn = "import time\\nwhile time.process_time() < 0.03: pass"
while True: subprocess.run([sys.executable, "-S", "-c", burn])
"""
"""Children that live far shorter than from one sample to the next."""


def spec_record(file, warden, owner, **changes):
    who = {"warden": proc.identify(warden).record(), "owner": proc.identify(owner).record()}
    return {"file": str(file), "hz": 50.0, "gpus": [], "cpu": True} | who | changes


def start_child(parent, code):
    """Let a helper that runs `WARDEN` or `PARENT` start a child; return its pid."""
    parent.stdin.write(code.replace("\n", ";;") + "\n")
    parent.stdin.flush()
    return hear(parent)


def hear(parent):
    assert select.select([parent.stdout], [], [], DEADLINE_S)[0], "it says nothing"
    return int(parent.stdout.readline())


def cpu_s(pid):
    """CPU time of a process, also a zombie, and of the children that it has collected."""
    stat = stat_of(pid)
    return (stat.own + stat.waited) / TICKS_PER_S


def used_s(samples, group, value="cpu_cores"):
    """CPU time that samples add up to."""
    return sum(getattr(s, group)[value] * s.interval_s for s in samples if s.interval_s)


class Run:
    """A stand-in warden with its sampler."""

    def __init__(self, path, warden, owner):
        self.path, self.warden, self.owner = path, warden, owner
        self.pid = hear(warden)

    def samples(self, count=1, after=0.0):
        """So many samples at least, after a time."""

        def enough():
            found = [s for s in read_samples(self.path) if s.t_s > after]
            return found if len(found) >= count else None

        return eventually(enough, f"{count} samples")

    def burn(self, parent, code, at_least_s):
        """Let a child of a helper use CPU time, then end it; return how much it was."""
        pid = start_child(parent, code)
        eventually(lambda: cpu_s(pid) >= at_least_s, "it has used CPU time")
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: stat_of(pid).state == "Z", "it has ended")
        return cpu_s(pid)

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        eventually(lambda: proc.start_ticks(self.pid) is None, "the sampler has ended")


@pytest.fixture
def run(tmp_path, python):
    """Start a sampler whose owner is a helper: this test and its other helpers are strangers."""
    started = []

    def start(file="telemetry.jsonl", **changes):
        owner = python(PARENT)
        assert hear(owner) == 0
        warden = python(WARDEN, str(tmp_path / "spec.json"))
        write_json(
            tmp_path / "spec.json", spec_record(tmp_path / file, warden.pid, owner.pid, **changes)
        )
        started.append(Run(tmp_path / file, warden, owner))
        return started[-1]

    yield start
    for one in started:
        for parent in (one.warden, one.owner):
            for pid in proc.tree(parent.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def test_it_writes_facts_then_samples_and_one_more_at_its_end(run):
    one = run()
    one.samples(5)
    os.kill(one.pid, signal.SIGSTOP)
    eventually(lambda: proc.stopped([one.pid]), "it is stopped")
    before = len(read_samples(one.path))
    os.kill(one.pid, signal.SIGTERM)
    os.kill(one.pid, signal.SIGCONT)
    eventually(lambda: proc.start_ticks(one.pid) is None, "it has ended")
    lines = [json.loads(line) for line in one.path.read_text().splitlines()]
    samples = read_samples(one.path)

    assert lines[0]["facts"]["hz"] == 50.0
    assert lines[0]["facts"]["cpu_ids"] == sorted(os.sched_getaffinity(0))
    assert len(samples) == len(lines) - 1  # no error, no half line
    assert before < len(samples) <= before + 2  # one that was under way, and the last
    assert all(a.t_s < b.t_s for a, b in itertools.pairwise(samples))
    head = {"t", "took_ms", "cpu_ms", "skipped", "lost", "host", "engine", "harness"}
    assert all(head <= line.keys() for line in lines[1:])
    assert samples[0].interval_s is None
    assert 0 < samples[2].interval_s < DEADLINE_S
    assert "gpus" not in lines[-1]


def test_ticks_lie_on_a_grid_and_those_that_are_missing_are_counted(run):
    one = run(hz=20.0)
    one.samples(3)
    os.kill(one.pid, signal.SIGSTOP)
    eventually(lambda: proc.stopped([one.pid]), "it is stopped")
    stopped_s = read_samples(one.path)[-1].t_s
    eventually(lambda: time.time() > stopped_s + 0.25, "five ticks have passed")
    os.kill(one.pid, signal.SIGCONT)
    one.samples(3, after=stopped_s)
    first, *later = read_samples(one.path)
    ticks = (later[-1].t_s - first.t_s) * 20.0

    assert later[-1].skipped >= 4
    # each tick is a line or counted; the last may be late by no more than one
    assert ticks - 1 < len(later) + later[-1].skipped < ticks + 1


@pytest.mark.parametrize("code", [BURN, SPAWN], ids=["one process", "short-lived children"])
@pytest.mark.parametrize("side", ["engine", "harness"])
def test_what_a_side_used_adds_up_over_the_samples(run, side, code):
    one = run(hz=20.0)
    first = one.samples(1)[-1]
    used = one.burn(one.warden if side == "engine" else one.owner, code, 0.5)
    one.samples(3, after=time.time())
    one.end()
    samples = read_samples(one.path)
    other = "harness" if side == "engine" else "engine"

    assert first.engine["processes"] == 0
    # clocks step by 10 ms, and a last short-lived child is collected by nobody; the helpers
    # and the sampler are harness, too
    assert used - 0.05 <= used_s(samples, side) <= used + 0.15 + 0.5 * (side == "harness")
    assert used_s(samples, other) < (0.05 if side == "harness" else 0.5)
    assert all(s.engine["cpu_cores"] >= 0 for s in samples if s.interval_s)


def test_a_process_outside_is_foreign(run, python):
    one = run(hz=20.0)
    begin = one.samples(1)[-1].t_s
    stranger = python(PARENT)
    assert hear(stranger) == 0
    used = one.burn(stranger, BURN, 0.5)
    samples = one.samples(3, after=time.time())
    samples = [s for s in read_samples(one.path) if begin < s.t_s <= samples[-1].t_s]

    # others of this machine are foreign, too: there is no upper bound
    assert used_s(samples, "host", "foreign_cpu_cores") > used / 2
    assert used_s(samples, "engine") < 0.05
    assert used_s(samples, "harness") < used / 2


def test_the_engine_is_seen_as_it_is(run):
    one = run()
    child = start_child(one.warden, BURN)
    found = one.samples(3, after=time.time())[-1].engine

    assert (found["processes"], found["threads"]) == (1, 1)
    assert 1 < found["rss_mib"] < 100
    if read_facts(one.path)["schedstat"]:
        shares = [s.engine.get("run_queue_delay_share") for s in read_samples(one.path)]
        assert any(share is not None and 0 <= share <= 1 for share in shares)
    os.kill(child, signal.SIGKILL)


def test_it_ends_with_its_warden(run):
    one = run()
    one.samples(1)
    one.warden.kill()
    one.warden.wait()

    eventually(lambda: proc.start_ticks(one.pid) is None, "the sampler has ended")


def switches(pid):
    """How often a process has gone to sleep."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(x.split()[1]) for x in lines if x.startswith("voluntary_ctxt_switches"))


def test_a_folder_that_goes_and_comes_back_costs_lines_that_are_counted(run, tmp_path):
    (tmp_path / "history").mkdir()
    one = run("history/telemetry.jsonl")
    one.samples(2)
    shutil.rmtree(tmp_path / "history")
    before = switches(one.pid)
    eventually(lambda: switches(one.pid) > before + 3, "it has gone on")
    (tmp_path / "history").mkdir()

    assert one.samples(2)[-1].lost >= 2


@pytest.mark.parametrize("hz", [0, -1, 101, float("inf"), float("nan")])
def test_a_pace_that_cannot_be_is_refused(tmp_path, hz):
    record = spec_record(tmp_path, os.getpid(), os.getpid(), hz=hz)
    with pytest.raises(SgmatrixError, match=r"telemetry hz = .*, allowed 0 < hz <= 100") as caught:
        sampler.Spec.from_record(record)

    assert caught.value.code == "config_rejected"


def test_a_sample_that_fails_costs_itself_and_is_told_once(tmp_path, monkeypatch):
    path = tmp_path / "telemetry.jsonl"
    spec = sampler.Spec.from_record(spec_record(path, os.getpid(), os.getppid()))
    one = sampler.Sampler(spec)

    def full():
        raise OSError(24, "Too many open files")

    one.attempt()
    monkeypatch.setattr(one._accounts, "look", full)
    one.attempt()
    one.attempt()
    monkeypatch.undo()
    one.attempt()

    assert len(read_samples(path)) == 2
    assert read_errors(path) == [
        {"source": "sampler", "kind": "OSError", "detail": "[Errno 24] Too many open files"}
    ]


# --- GPUs, in this process, which is warden and sampler at once ----------------------------------


@pytest.fixture
def sample(tmp_path):
    """Take samples with these GPUs until so many have values of one; return all of them."""
    path = tmp_path / "telemetry.jsonl"

    def sample(nvml, *names, count=1, **changes):
        record = spec_record(path, os.getpid(), os.getppid(), gpus=names, **{"hz": 2.0} | changes)
        one = sampler.Sampler(
            sampler.Spec.from_record(record),
            make_gpus=lambda names, tell: Gpus(names, tell, lambda: nvml),
        )
        one.begin()

        def enough():
            one.sample()
            found = [s for s in read_samples(path) if s.gpus]
            return found if len(found) >= count else None

        return eventually(enough, "GPUs are told"), path

    return sample


def test_gpus_have_their_values_beside_those_of_the_machine(sample):
    (found, *_), path = sample(Module("GPU-aaaa", "GPU-bbbb"), "1", "GPU-aaaa")

    assert set(found.gpus) == {"0", "1"}
    assert found.gpus["1"]["power_w"] == 350.5
    assert found.gpus["1"]["energy_j"] == 123_456.789
    assert abs(found.gpus["1"]["t"] - found.t_s) < DEADLINE_S
    assert found.host["memory_used_mib"] > 0
    facts = read_facts(path)
    assert facts["gpus"]["0"]["uuid"] == "GPU-aaaa"
    assert (facts["hz"], facts["driver"]) == (2.0, "610.43")


def test_processes_on_a_gpu_are_ours_strangers_or_not_to_be_seen(sample, process):
    nvml, mine, nobody = Module("GPU-aaaa"), process().pid, 2**22 + 1
    nvml.answers["GPU-aaaa", "ComputeRunningProcesses"] = [
        SimpleNamespace(pid=pid) for pid in (mine, os.getppid(), nobody)
    ]
    (found, *_), _path = sample(nvml, "0")

    assert found.gpus["0"]["foreign_pids"] == [os.getppid()]
    assert found.gpus["0"]["unseen_pids"] == [nobody]
    assert "pids" not in found.gpus["0"]


def test_a_lost_gpu_is_told_once_and_the_rest_goes_on(sample):
    nvml = Module("GPU-aaaa", "GPU-bbbb")
    nvml.answers["GPU-aaaa", "PowerUsage"] = NVMLError_GpuIsLost("GPU is lost")
    found, path = sample(nvml, "0", "1", count=3)

    assert all(list(s.gpus) == ["1"] for s in found)
    assert [error["source"] for error in read_errors(path)] == ["gpu 0"]


def test_a_machine_that_is_not_to_be_sampled_is_left_out(sample):
    (found, *_), path = sample(Module("GPU-aaaa"), "0", cpu=False)

    assert (found.host, found.engine, found.harness) == ({}, {}, {})
    assert found.gpus["0"]["power_w"] == 350.5
    assert "cpus" not in read_facts(path)
