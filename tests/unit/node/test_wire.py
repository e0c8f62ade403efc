"""A few HTTP requests: whatever goes wrong is an OSError."""

import json
import re
import socket
import threading

import pytest

from sgmatrix.node.wire import get_json, request
from standin.launcher import free_port


@pytest.fixture
def answering():
    """A port that answers one connection with these bytes, and what was asked of it."""
    threads, asked = [], []

    def start(answer):
        server = socket.create_server(("127.0.0.1", 0))

        def serve():
            with server, server.accept()[0] as connection, connection.makefile("rb") as request:
                head = b"".join(iter(request.readline, b"\r\n"))
                length = re.search(rb"Content-Length: (\d+)", head)
                asked.append((head, request.read(int(length[1])) if length else b""))
                connection.sendall(answer)

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return server.getsockname()[1]

    start.asked = asked
    yield start
    for thread in threads:
        thread.join()


def http(status, body):
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


@pytest.mark.parametrize("status", [200, 404, 503])
def test_status_and_body_are_returned_whatever_the_status(answering, status):
    port = answering(http(status, b"body"))

    assert request(port, "GET", "/health", timeout_s=20) == (status, b"body")
    assert answering.asked[0][0].startswith(b"GET /health HTTP/1.1\r\n")


def test_a_body_is_sent_as_json(answering):
    request(answering(http(200, b"")), "POST", "/generate", {"a": [1]}, timeout_s=20)

    ((head, body),) = answering.asked
    assert b"Content-Type: application/json" in head
    assert json.loads(body) == {"a": [1]}


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH_9.9\r\n", http(200, b"half")[:-1]])
def test_an_answer_that_is_no_http_is_an_os_error(answering, answer):
    with pytest.raises(OSError):  # noqa: PT011 - of several kinds
        request(answering(answer), "GET", "/", timeout_s=20)


def test_nobody_listening_is_an_os_error():
    with pytest.raises(ConnectionRefusedError):
        request(free_port(), "GET", "/", timeout_s=20)


def test_json_is_read(answering):
    assert get_json(answering(http(200, b'{"a": 1}')), "/server_info", timeout_s=20) == {"a": 1}


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        (http(500, b"{}"), "/server_info answered 500"),
        (http(200, b"<html>"), "/server_info answered no JSON"),
    ],
)
def test_an_answer_that_is_no_json_or_no_success_is_an_os_error(answering, answer, want):
    with pytest.raises(OSError, match=want):
        get_json(answering(answer), "/server_info", timeout_s=20)
