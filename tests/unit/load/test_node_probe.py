"""What a probe of the node says, with an engine's Python that answers as it is told."""

import json

import pytest

from sgmatrix.load.node_probe import copy_values, measure, told

GPU_COPIES = {"torch": "2.11.0+cu130", "copies": [[[2**31, 4.0e12, 4.1e12]], [[2**31, 3e12, 3e12]]]}
TABLES = {"2": [[4096, 1e-5], [268435456, 9e-4]]}


@pytest.fixture
def asked(tmp_path):
    """A planned probe whose interpreter prints what is given for each script."""

    def asked(*, copies=GPU_COPIES, allreduce=None, device="cuda", groups=(2,), env=None):
        python = tmp_path / "python"
        lines = ["#!/bin/bash", 'case "$1" in']
        for name, said in (("bandwidth.py", copies), ("allreduce.py", allreduce)):
            told = '"$@ nvls=$NCCL_NVLS_ENABLE gpus=$CUDA_VISIBLE_DEVICES"'
            say = said if isinstance(said, str) else f"echo '{json.dumps(said)}'"
            lines.append(f"*{name}) echo {told} >> {tmp_path}/calls; {say} ;;")
        python.write_text("\n".join([*lines, "esac", ""]))
        python.chmod(0o755)
        return {
            "python": str(python),
            "env": env or {},
            "device": device,
            "groups": list(groups),
        }

    return asked


def calls(tmp_path):
    return (tmp_path / "calls").read_text().splitlines()


def test_copies_of_a_cpu_are_the_largest_buffer_and_the_best_of_all():
    rates = [[[1 << 20, 29e9, 60e9], [4 << 20, 24e9, 25e9], [256 << 20, 11e9, 12e9]]]

    values = copy_values(rates, "cpu")

    assert values["memory_copy_bytes_s"] == 11e9
    assert values["memory_cached_bytes_s"] == 60e9
    assert values["memory_copies"] == rates


def test_copies_of_gpus_are_their_median_and_have_no_cache():
    values = copy_values(GPU_COPIES["copies"], "cuda")

    assert values["memory_copy_bytes_s"] == 3.5e12
    assert "memory_cached_bytes_s" not in values


def test_two_gpus_are_measured_with_multicast_off(asked, tmp_path):
    found = measure(asked(allreduce={"allreduce_s": TABLES, "error": None}), ["gpu-1", "gpu-3"])

    assert (found["status"], found["skipped"], found["torch"]) == ("ok", {}, "2.11.0+cu130")
    assert found["measured"]["allreduce_s"] == TABLES
    copied, reduced = calls(tmp_path)
    assert "bandwidth.py cuda 2147483648 nvls=0 gpus=1,3" in copied
    assert "allreduce.py nccl 2 4096,16384," in reduced and ",268435456 60.0 nvls=0" in reduced
    assert found["environment"]["NCCL_NVLS_ENABLE"] == "0"


def test_what_the_engine_declares_wins(asked, tmp_path):
    probe = asked(allreduce={"allreduce_s": TABLES, "error": None}, env={"NCCL_NVLS_ENABLE": "1"})

    found = measure(probe, ["gpu-0", "gpu-1"])

    assert "nvls=1" in calls(tmp_path)[1]
    assert found["environment"]["NCCL_NVLS_ENABLE"] == "1"


def test_a_cpu_and_one_gpu_have_nothing_to_reduce_with_and_that_is_no_failure(asked, tmp_path):
    on_cpu = measure(asked(device="cpu", groups=()), ["cpu"])
    assert (on_cpu["status"], on_cpu["skipped"]) == ("ok", {"allreduce_s": "no GPU"})
    assert on_cpu["environment"] == {}

    one = measure(asked(groups=()), ["gpu-0"])
    assert (one["status"], one["skipped"]) == ("ok", {"allreduce_s": "one GPU"})
    assert not any("allreduce" in call for call in calls(tmp_path))


def test_nccl_that_fails_is_named_and_what_came_before_is_kept(asked):
    said = {"allreduce_s": TABLES, "error": "rank 3: ncclSystemError: no socket interface found"}
    found = measure(asked(allreduce=said, groups=(2, 4)), [f"gpu-{n}" for n in range(4)])

    assert found["status"] == "failed"
    assert found["measured"]["allreduce_s"] == TABLES
    assert found["skipped"] == {"allreduce_s": said["error"]}


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (
            "echo Traceback >&2; echo \"ModuleNotFoundError: No module named 'torch'\" >&2; exit 1",
            "ModuleNotFoundError: No module named 'torch'",
        ),
        ("echo this is no JSON", "Expecting value: line 1 column 1 (char 0)"),
        ("echo '{}'", "'torch'"),
        ('echo \'{"torch": "2", "copies": []}\'', "no median for empty data"),
        ("echo 7", "'int' object is not subscriptable"),
    ],
)
def test_a_broken_interpreter_is_a_reason_for_both_and_no_exception(asked, tmp_path, broken, why):
    found = measure(asked(copies=broken), ["gpu-0", "gpu-1"])

    assert found["status"] == "failed"
    assert found["measured"] == {}
    assert found["skipped"] == {"memory_copy_bytes_s": why, "allreduce_s": why}
    assert len(calls(tmp_path)) == 1  # what has no torch is not asked twice


def test_an_interpreter_that_is_not_there_is_a_reason(asked):
    found = measure({**asked(device="cpu", groups=()), "python": "/nowhere/python"}, ["cpu"])

    assert "No such file or directory: '/nowhere/python'" in found["skipped"]["memory_copy_bytes_s"]


def test_a_record_is_told_in_lines():
    record = {
        "measured": {
            "memory_copy_bytes_s": 4.213e12,
            "allreduce_s": {"2": TABLES["2"], "4": [[4096, 2e-5], [268435456, 1e-3]]},
        },
        "skipped": {"memory_cached_bytes_s": "why not"},
        "duration_s": 9.96,
    }

    assert told(record) == [
        "memory copies at 4213.0 GB/s",
        # 268 MB in 0.9 ms; of n GPUs 2 (n - 1) / n of it goes over each link
        "all-reduce of 2 GPUs from 10.0 us, 298.3 GB/s on the bus",
        "all-reduce of 4 GPUs from 20.0 us, 402.7 GB/s on the bus",
        "memory_cached_bytes_s not measured: why not",
        "took 10.0 s",
    ]
