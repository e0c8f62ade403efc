"""What machine this is."""

import os

from sgmatrix.node.facts import gpu_facts, node_facts


def smi(folder, body):
    file = folder / "nvidia-smi"
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)


def test_gpus_with_driver_and_limit_and_null_for_what_is_not_known(tmp_path, monkeypatch):
    smi(
        tmp_path,
        'echo "0, GPU-1, NVIDIA H200, 580.1, 700.00 W, 143771 MiB"\n'
        'echo "1, GPU-2, NVIDIA H200, 580.1, [N/A], ERR!"',
    )
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    first, second = gpu_facts()

    assert first == {
        "index": "0",
        "uuid": "GPU-1",
        "name": "NVIDIA H200",
        "driver_version": "580.1",
        "power.limit": "700.00 W",
        "memory.total": "143771 MiB",
    }
    assert (second["power.limit"], second["memory.total"]) == (None, None)


def test_a_failing_or_absent_nvidia_smi_is_no_list(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_facts() is None

    smi(tmp_path, "exit 18")
    assert gpu_facts() is None


def test_the_cpu_engine_asks_for_no_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    facts = node_facts("cpu")

    assert facts["gpus"] == []
    assert facts["kernel"] == os.uname().release
    assert facts["cores"] == len(os.sched_getaffinity(0))
    assert facts["memory_mb"] > 100
