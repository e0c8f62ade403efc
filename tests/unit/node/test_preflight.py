"""Before a launch: each "no" names its cause, and nothing that is in the way is touched."""

import os
import socket

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.node import preflight


def refusal(check, *arguments):
    with pytest.raises(SgmatrixError) as caught:
        check(*arguments)
    return caught.value


# --- memory --------------------------------------------------------------------------------------


def test_memory_that_is_not_there_is_refused_with_both_numbers(monkeypatch):
    monkeypatch.setattr(preflight, "free_memory_mb", lambda: 3999)

    preflight.check_memory(3999)
    error = refusal(preflight.check_memory, 4000)

    assert error.code == "gpu_busy"
    assert error.facts == "3999 MiB of memory free on this machine, the engine needs 4000"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("MemTotal: 9216 kB\nMemFree: 1024 kB\nMemAvailable:    2048 kB\nBuffers: 1 kB\n", 2),
        ("MemTotal: 9216 kB\n", 0),
    ],
)
def test_free_memory_is_what_the_kernel_calls_available(monkeypatch, text, want):
    monkeypatch.setattr(preflight.Path, "read_text", lambda _self: text)

    assert preflight.free_memory_mb() == want


# --- ports ---------------------------------------------------------------------------------------


def test_a_busy_port_is_refused_with_its_owner_s_number_and_command():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        error = refusal(preflight.check_port, port)

    assert error.code == "port_in_use"
    assert error.facts.startswith(f"port {port} is taken by pid {os.getpid()}: ")
    assert "pytest" in error.facts
    preflight.check_port(port)  # free again


def test_a_busy_port_of_somebody_whose_processes_we_may_not_see_is_refused_too(monkeypatch):
    monkeypatch.setattr(preflight.proc, "owners", lambda _inodes: set())
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        assert refusal(preflight.check_port, port).facts == (
            f"port {port} is taken by another user's process"
        )


def test_a_port_that_is_called_free_can_be_listened_on():
    port = preflight.free_port()

    preflight.check_port(port)
    with socket.create_server(("127.0.0.1", port)):
        pass


# --- GPUs ----------------------------------------------------------------------------------------


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Put a made-up nvidia-smi on the path; it notes how it was called."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def install(script):
        program = tmp_path / "nvidia-smi"
        program.write_text(f'#!/bin/sh\necho "$@" > "{tmp_path}/called"\n{script}\n')
        program.chmod(0o755)
        return tmp_path / "called"

    return install


def test_gpus_on_which_nobody_computes_are_free(nvidia_smi):
    called = nvidia_smi("true")

    preflight.check_gpus(["gpu-2", "gpu-3"])

    assert called.read_text() == (
        "--id=2,3 --query-compute-apps=pid,used_memory,process_name --format=csv,noheader\n"
    )


def test_processes_on_the_gpus_are_named(nvidia_smi):
    nvidia_smi("echo '4711, 60000 MiB, python'; echo '4712, 2 MiB, python'")

    error = refusal(preflight.check_gpus, ["gpu-0"])

    assert error.code == "gpu_busy"
    assert error.facts == "GPUs 0 are used by 4711, 60000 MiB, python; 4712, 2 MiB, python"


def test_gpus_that_cannot_be_looked_at_are_not_called_free(nvidia_smi):
    nvidia_smi("echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18")

    error = refusal(preflight.check_gpus, ["gpu-0", "gpu-1"])

    assert error.code == "gpu_busy"
    assert error.facts == (
        "cannot see whether GPUs 0,1 are free: nvidia-smi ended with 18: "
        "Failed to initialize NVML: Driver/library version mismatch"
    )


def test_a_node_without_nvidia_smi_has_no_free_gpus(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "cannot see whether the GPUs are free" in refusal(preflight.check_gpus, ["gpu-0"]).facts


def test_an_nvidia_smi_that_hangs_is_given_up(nvidia_smi, monkeypatch):
    monkeypatch.setattr(preflight, "_SMI_TIMEOUT_S", 0.1)
    nvidia_smi("exec sleep 600")

    assert "timed out" in refusal(preflight.check_gpus, ["gpu-0"]).facts


def test_the_cpu_engine_asks_no_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    assert preflight.check_gpus(["cpu"]) is None
