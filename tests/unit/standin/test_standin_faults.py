"""Each fault of the stand-in does what its line in the catalogue says, and nothing else."""

import http.client
import json
import os
import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from standin.launcher import DEADLINE_S, STANDIN, alive, eventually, sse


def test_every_fault_of_the_catalogue_is_tested_here():
    source = (STANDIN / "sglang" / "standin_faults.py").read_text()
    names = re.findall(r'^    "(\w+)": \(', source, re.MULTILINE)
    proofs = Path(__file__).parents[2] / "workflow" / "test_oea_proof.py"  # they need a warden
    tested = Path(__file__).read_text() + proofs.read_text()

    assert len(names) > 30
    assert [name for name in names if not re.search(rf"\b{name}\b", tested)] == []


def dropped(standin) -> bool:
    """Whether a generate request ends without any answer."""
    try:
        standin.generate()
    except (http.client.RemoteDisconnected, ConnectionError):
        return True
    return False


# --- asking for a fault --------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["no_such_fault", "http_500", "oom_kv?no_such_flag=1"])
def test_a_fault_that_makes_no_sense_is_refused_like_a_bad_flag(launch, fault):
    standin = launch("--standin-fault", fault, wait=False)

    assert standin.exit_code() == 2
    assert "error: argument --standin-fault:" in standin.log()


def test_condition_on_a_flag_picks_the_cell_that_fails(launch):
    fault = ("--standin-fault", "oom_kv?mem_fraction_static=0.950")

    launch(*fault, "--mem-fraction-static", "0.90")
    failing = launch(*fault, "--mem-fraction-static", "0.95", wait=False)
    assert failing.exit_code() == -signal.SIGKILL


def test_condition_once_spares_the_second_launch(launch, tmp_path):
    fault = ("--standin-fault", f"die_before_ready:7?once={tmp_path / 'mark'}")

    assert launch(*fault, wait=False).exit_code() == 7
    assert launch(*fault).health() == 200


def test_share_is_spread_evenly_from_the_request_named(launch):
    standin = launch("--standin-fault", "http_500:0.5@5")

    statuses = [standin.generate()[0] for _ in range(10)]
    assert statuses == [200, 200, 200, 200, 200, 500, 200, 500, 200, 500]


# --- start ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "code", "line"),
    [
        ("die_before_ready", 1, "RuntimeError: stand-in dies before it is ready"),
        ("die_before_ready:3", 3, "RuntimeError: stand-in dies before it is ready"),
        ("oom_weights", -9, "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB"),
        ("oom_kv", -9, "Not enough memory. Please try to increase --mem-fraction-static."),
        ("nccl_error", -9, "DistBackendError: NCCL error"),
        ("kernel_unsupported", -9, "no kernel image is available for execution on the device"),
        ("internal_port_in_use", 1, "is used by a process already (pid 1, sglang::scheduler)"),
        ("oom_kv:SIGTERM", -15, "RuntimeError: Not enough memory."),
    ],
)
def test_death_at_start_leaves_its_code_and_its_line(launch, fault, code, line):
    standin = launch("--standin-fault", fault, wait=False)

    assert standin.exit_code() == code
    assert line in standin.log()
    assert "Uvicorn running" not in standin.log()
    if "internal_port" not in fault:
        assert "Scheduler hit an exception: Traceback (most recent call last):" in standin.log()
    assert not alive(standin.events("start")[0]["scheduler_pid"])


def test_never_opens_port_stays_alive_and_silent(launch):
    standin = launch("--standin-fault", "never_opens_port", wait=False)
    eventually(lambda: "NCCL INFO Bootstrap" in standin.log(), "last line of the log")
    log, end = standin.log(), time.monotonic() + 0.3
    while time.monotonic() < end:
        assert standin.health() is None

    assert standin.log() == log
    assert standin.process.poll() is None
    assert standin.stop() == 0


def test_never_ready_answers_generates_but_not_health(launch):
    standin = launch("--standin-fault", "never_ready", wait=False)
    eventually(lambda: standin.health() == 503, "port open")

    assert standin.generate()[0] == 200
    assert standin.health() == 503
    assert standin.events("ready") == []


def test_autotune_noise_is_only_noise(launch):
    standin = launch("--standin-fault", "autotune_noise:160")

    assert standin.log().count("[ERROR] Assertion failed: Failed to initialize cutlass") == 160
    assert standin.generate()[0] == 200


def test_odd_log_holds_bytes_that_are_not_utf8(launch):
    standin = launch("--standin-fault", "odd_log")

    log = standin.log_file.read_bytes()
    assert b"na\xefve" in log
    assert b"\x1b[31mWARN" in log
    assert b"\rLoading safetensors" in log


def test_health_before_generate_makes_the_first_token_wait(launch):
    standin = launch("--standin-fault", "health_before_generate:0.4")
    assert standin.health() == 200
    assert standin.generate()[0] == 200

    assert standin.events("first")[0]["t"] - standin.events("ready")[0]["t"] >= 0.4


# --- death while serving -------------------------------------------------------------------------


@pytest.mark.parametrize(("death", "code"), [("", -9), (":3", 3), (":SIGSEGV", -11)])
def test_die_after_serves_so_many_and_dies_with_the_traceback(launch, death, code):
    standin = launch("--standin-fault", f"die_after:2{death}")
    assert [standin.generate()[0] for _ in range(2)] == [200, 200]
    assert dropped(standin)

    assert standin.exit_code() == code
    assert "Scheduler hit an exception: Traceback" in standin.log()
    assert "AttributeError: 'ForwardMetadata' object has no attribute" in standin.log()
    assert "'page_table_1_flattened'" in standin.log()
    assert standin.outcomes() == ["ok", "ok"]


def test_oom_runtime_dies_of_the_request_after(launch):
    standin = launch("--standin-fault", "oom_runtime:1")
    assert standin.generate()[0] == 200
    assert dropped(standin)

    assert standin.exit_code() == -signal.SIGKILL
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB" in standin.log()


def test_scheduler_dies_after_leaves_a_front_end_that_drops_everything(launch):
    standin = launch("--standin-fault", "scheduler_dies_after:1")
    scheduler = standin.events("start")[0]["scheduler_pid"]
    assert standin.generate()[0] == 200
    assert alive(scheduler)

    assert [dropped(standin) for _ in range(3)] == [True] * 3
    assert not alive(scheduler)
    assert standin.health() == 200
    assert standin.log().count("Scheduler hit an exception") == 1
    assert standin.outcomes() == ["ok", "dropped", "dropped", "dropped"]


# --- wrong answers -------------------------------------------------------------------------------


def test_http_500_hits_its_share(launch):
    standin = launch("--standin-fault", "http_500:0.25")

    assert [standin.generate()[0] for _ in range(8)] == [200, 200, 200, 500] * 2
    assert standin.outcomes().count("http_500") == 2


@pytest.mark.parametrize(
    ("fault", "statuses"), [("http_503:2", [503, 503, 200]), ("http_404:all", [404] * 3)]
)
def test_first_requests_are_refused(launch, fault, statuses):
    standin = launch("--standin-fault", fault)

    assert [standin.generate()[0] for _ in range(3)] == statuses
    assert standin.health() == 200


def test_error_body_has_status_200(launch):
    status, body = launch("--standin-fault", "error_body:1").generate()

    assert status == 200
    assert "error" in json.loads(body)


def test_sse_error_comes_after_two_deltas(launch):
    standin = launch("--standin-fault", "sse_error:1")
    status, body = standin.generate(tokens=9)
    _, second, error, done = sse(body)

    assert (status, done) == (200, "[DONE]")
    assert second["meta_info"]["completion_tokens"] == 2
    assert second["meta_info"]["finish_reason"] is None
    assert error["error"]["code"] == 500
    assert standin.outcomes() == ["sse_error"]


def test_truncate_closes_before_the_end(launch):
    standin = launch("--standin-fault", "truncate:1")
    with pytest.raises(http.client.IncompleteRead) as caught:
        standin.generate(tokens=10)

    events = sse(caught.value.partial)
    assert [event["meta_info"]["completion_tokens"] for event in events] == [1, 2, 3, 4, 5]
    assert standin.outcomes() == ["truncated"]


def test_hang_stream_sends_one_delta_and_keeps_the_socket(launch):
    standin = launch("--standin-fault", "hang_stream:2")
    assert standin.generate()[0] == 200
    body = {"text": "a", "stream": True, "sampling_params": {"max_new_tokens": 9}}
    with standin.connect() as connection:
        connection.request("POST", "/generate", json.dumps(body))
        with connection.getresponse() as response:
            assert b'"completion_tokens":1' in response.readline()
            connection.sock.settimeout(0.2)
            with pytest.raises(TimeoutError):
                response.read()

            assert standin.generate()[0] == 200  # the others are served
            assert standin.outcomes() == ["ok", "ok"]


def test_short_output_stops_by_itself(launch):
    standin = launch("--standin-fault", "short_output:5")
    _, body = standin.generate(tokens=20)
    last = sse(body)[-2]["meta_info"]

    assert last["completion_tokens"] == 5
    assert last["finish_reason"] == {"type": "stop", "matched": 2}
    assert standin.outcomes() == ["short"]


def test_multi_token_chunks_carry_k_tokens(launch):
    _, body = launch("--standin-fault", "multi_token_chunks:3").generate(tokens=8)

    assert [event["meta_info"]["completion_tokens"] for event in sse(body)[:-1]] == [1, 4, 7, 8]


def test_odd_sse_is_readable_by_a_correct_reader(launch):
    _, body = launch("--standin-fault", "odd_sse").generate(tokens=2)

    lines = body.decode().split("\r\n")
    assert lines[:2] == [": ping", ""]
    data = [line.removeprefix("data:") for line in lines if line.startswith("data:")]
    assert [json.loads(d)["text"] for d in data[:-1]] == ["tök", "tök tök"]
    assert data[-1] == "[DONE]"


def test_odd_sse_cuts_inside_a_character(launch):
    standin = launch("--standin-fault", "odd_sse")
    with socket.create_connection(("127.0.0.1", standin.port), DEADLINE_S) as client:
        body = b'{"text":"a","stream":true,"sampling_params":{"max_new_tokens":1}}'
        head = b"POST /generate HTTP/1.1\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        client.sendall(head % len(body) + body)
        raw = b""
        while data := client.recv(65536):
            raw += data

    assert re.search(b"\xc3\r\n[0-9a-f]+\r\n\xb6", raw)  # the two bytes of one letter, two chunks


def test_no_usage_leaves_the_counts_out(launch):
    standin = launch("--standin-fault", "no_usage")
    _, body = standin.generate()
    assert "completion_tokens" not in sse(body)[-2]["meta_info"]

    asked = {"prompt": "a", "stream": True, "stream_options": {"include_usage": True}}
    _, body = standin.ask("POST", "/v1/completions", asked)
    assert sse(body)[-2]["usage"] is None


def test_health_busy_answers_503_while_enough_requests_run(launch):
    standin = launch("--standin-fault", "health_busy:1", "--standin-tpot-ms", "5")
    assert standin.ask("GET", "/health_generate")[0] == 200
    with ThreadPoolExecutor(1) as pool:
        pool.submit(standin.generate, 40)
        eventually(lambda: standin.events("first"), "running")
        assert standin.ask("GET", "/health_generate")[0] == 503
        assert standin.health() == 200


def test_wrong_model_wrong_flag_and_wrong_version_are_lies_of_server_info(launch):
    faults = ["wrong_model:their-model", "wrong_flag:tp_size=4", "wrong_version:0.4.1"]
    standin = launch(*[part for fault in faults for part in ("--standin-fault", fault)])
    info = standin.json("/server_info")

    assert (info["model_path"], info["served_model_name"]) == ("their-model", "their-model")
    assert (info["tp_size"], info["version"]) == (4, "0.4.1")
    assert standin.json("/model_info")["model_path"] == "their-model"
    assert standin.json("/v1/models")["data"][0]["id"] == "their-model"


def test_flush_refused_keeps_the_cache(launch):
    standin = launch("--standin-fault", "flush_refused")
    standin.generate()
    assert standin.ask("POST", "/flush_cache?timeout=1")[0] == 400
    standin.generate()

    assert standin.events("first")[1]["cached_tokens"] == 2


# --- does not go away ----------------------------------------------------------------------------


def test_ignore_sigterm_needs_sigkill(launch):
    standin = launch("--standin-fault", "ignore_sigterm")
    for _ in range(3):
        standin.process.terminate()
        assert standin.generate()[0] == 200

    standin.process.kill()
    assert standin.exit_code() == -signal.SIGKILL


def test_drain_forever_waits_for_the_open_stream(launch):
    standin = launch("--standin-fault", "drain_forever", "--standin-tpot-ms", "5")
    body = {"text": "a", "stream": True, "sampling_params": {"max_new_tokens": 10_000}}
    with standin.connect() as connection:
        connection.request("POST", "/generate", json.dumps(body))
        with connection.getresponse():
            standin.process.terminate()
            eventually(lambda: standin.log().count("Gracefully exiting...") > 1, "draining")
            assert standin.health() == 503

    assert standin.exit_code() == 0


def test_escaped_child_survives_its_parent_and_holds_the_port(launch):
    standin = launch("--standin-fault", "escaped_child:60")
    child = standin.events("escaped")[0]["pid"]
    try:
        assert standin.stop() == 0
        assert alive(child)
        session = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[3]
        assert int(session) == child  # its own session
        with socket.create_connection(("127.0.0.1", standin.port), DEADLINE_S) as client:
            client.settimeout(0.2)
            client.sendall(b"GET /health HTTP/1.1\r\n\r\n")
            with pytest.raises(TimeoutError):
                client.recv(1)
        os.kill(child, signal.SIGTERM)
        assert alive(child)
    finally:
        os.kill(child, signal.SIGKILL)
    eventually(lambda: not alive(child), "child gone")
