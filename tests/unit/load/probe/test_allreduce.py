"""The arithmetic and the ends of the all-reduce script, without torch."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sgmatrix.load import probe

SCRIPT = Path(probe.__file__).with_name("allreduce.py")


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("allreduce", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Number:
    """A tensor of equal values."""

    def __init__(self, value, size=1):
        self.value, self.size = value, size

    def tolist(self):
        return [self.value] * self.size

    def item(self):
        return self.value


def fake_torch():
    return SimpleNamespace(
        bfloat16="bf16",
        float64="f64",
        ones=lambda n, dtype, device: Number(1.0, n),
        zeros=lambda n, dtype, device: Number(0.0, n),
        tensor=lambda values, dtype, device: Number(values[0]),
    )


class FakeDist:
    """Adds up the ones of `members` ranks; the slowest of them takes `late_s` more."""

    ReduceOp = SimpleNamespace(MAX="max")

    def __init__(self, members, late_s=0.0):
        self.members, self.late_s, self.reduced = members, late_s, []

    def all_reduce(self, tensor, op="sum", group=None):
        if op == "max":
            tensor.value += self.late_s
        else:
            tensor.value *= self.members
            self.reduced.append(tensor.size)


def test_small_messages_are_repeated_often_and_large_ones_at_least_twice(script):
    assert [script.repeats_of(size) for size in (4096, 16 << 20, 256 << 20, 1 << 30)] == [
        *(50, 32, 2, 2)
    ]


def test_a_number_is_the_slowest_members_round_over_its_repeats(script, monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(script.time, "perf_counter", lambda: float(next(clock)))  # 1 s a round
    dist = FakeDist(2, late_s=3.0)

    table = script.table_of(fake_torch(), dist, "group", 2, [4096, 256 << 20], "cpu")

    assert table == [[4096, 4.0 / 50], [256 << 20, 4.0 / 2]]
    # 1 + 5 x 50 of 2048 bf16 numbers, 1 + 5 x 2 of 2**27
    assert dist.reduced.count(2048) == 251
    assert dist.reduced.count(2**27) == 11


def test_the_median_round_counts(script, monkeypatch):
    took = iter([5.0, 1.0, 3.0, 2.0, 100.0])
    monkeypatch.setattr(script, "_on_cpu", lambda reduce, repeats: lambda: next(took))

    table = script.table_of(fake_torch(), FakeDist(2), "group", 2, [256 << 20], "cpu")

    assert table == [[256 << 20, 1.5]]


def test_a_sum_that_is_none_is_no_measurement(script):
    with pytest.raises(RuntimeError, match="all-reduce of 4 ones gave"):
        script.table_of(fake_torch(), FakeDist(3), "group", 4, [4096], "cpu")


@pytest.mark.parametrize(
    ("said", "root"),
    [
        ("Traceback\n  File 'a'\nModuleNotFoundError: No module named 'torch'\n", "ModuleNotFound"),
        (
            "DistBackendError: NCCL error\nLast error:\nCuda failure 999\nProcess ends: Error\n",
            "Cuda failure 999",
        ),
        ("torch.AcceleratorError: CUDA error: invalid device ordinal\nhint\n", "torch.Accelerator"),
        ("Killed\n", "Killed"),
        ("", "it said nothing"),
    ],
)
def test_the_root_line_is_found(script, said, root):
    assert script.root_line(said).startswith(root)


def ranks(tmp_path, torch):
    """Run three ranks whose `import torch` runs that code."""
    (tmp_path / "torch.py").write_text(torch)
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, str(SCRIPT), "gloo", "2,3", "4096", "2"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return done.stdout


def test_a_rank_that_fails_ends_the_others_with_its_line(tmp_path):
    torch = (
        "import sys, time\nif sys.argv[3] == '1': raise OSError('rank one breaks')\ntime.sleep(60)"
    )

    said = ranks(tmp_path, torch)

    assert said == '{"allreduce_s": {}, "error": "rank 1: OSError: rank one breaks"}'


def test_ranks_that_hang_are_ended_at_the_limit_and_what_was_found_is_kept(tmp_path):
    torch = (
        "import os, pathlib, sys, time\n"
        "pathlib.Path(sys.argv[6], 'found.jsonl').write_text('[\"2\", [[4096, 1e-05]]]\\n')\n"
        f"pathlib.Path({str(tmp_path)!r}, f'pid{{sys.argv[3]}}').write_text(str(os.getpid()))\n"
        "time.sleep(60)"
    )

    said = ranks(tmp_path, torch)

    assert said == '{"allreduce_s": {"2": [[4096, 1e-05]]}, "error": "no answer within 2 s"}'
    pids = [int(file.read_text()) for file in tmp_path.glob("pid*")]
    assert len(pids) == 3 and not any(Path(f"/proc/{pid}").exists() for pid in pids)
