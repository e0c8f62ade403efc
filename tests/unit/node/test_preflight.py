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
