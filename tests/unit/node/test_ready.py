"""Readiness: whose port it is, and whether the server is what was asked for."""

import os
import socket

import pytest

from sgmatrix.node import ready
from sgmatrix.node.ready import NotOurs, compare_info, port_owner
from standin.launcher import free_port

NONCE = "tp8-0123abcd"


@pytest.mark.parametrize(
    ("asked", "reported"),
    [
        (8, 8),
        (8, "8"),
        (0.9, 0.9),
        (0.9, 0.9000000000000001),
        (1, 1.0),
        ("fa3", "fa3"),
        (True, True),
        (False, False),
        (None, "auto"),  # not given, so that the engine chose
        ({"num_hidden_layers": 2}, '{"num_hidden_layers": 2}'),
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
    ],
)
def test_a_value_that_means_the_same_is_no_difference(asked, reported):
    info = {"served_model_name": NONCE, "flag": reported}

    assert compare_info(info, NONCE, {"flag": asked}) == {}


@pytest.mark.parametrize(
    ("asked", "reported"),
    [
        (8, 4),
        (0.9, 0.88),
        ("fa3", "triton"),
        ("fa3", None),
        (True, False),
        (False, True),
        (1, True),  # a switch is no number
        (True, 1),
        ({"num_hidden_layers": 2}, '{"num_hidden_layers": 3}'),
        ({"num_hidden_layers": 2}, "no json"),
    ],
)
def test_a_value_that_differs_is_told_with_both_sides(asked, reported):
    info = {"served_model_name": NONCE, "flag": reported, "other": 1}

    assert compare_info(info, NONCE, {"flag": asked, "other": 1}) == {"flag": [asked, reported]}


def test_a_flag_that_the_server_does_not_report_cannot_differ():
    assert compare_info({"served_model_name": NONCE}, NONCE, {"standin_ready_ms": 30}) == {}


@pytest.mark.parametrize("name", ["glm", None, "tp8-0123abce", ["tp8-0123abcd"]])
def test_a_server_without_our_name_is_not_ours_whatever_its_flags(name):
    with pytest.raises(NotOurs) as caught:
        compare_info({"served_model_name": name, "tp_size": 8}, NONCE, {"tp_size": 8})

    assert caught.value.args == (
        "wrong_server",
        f"served_model_name is {name!r}, not 'tp8-0123abcd'",
    )


def test_a_port_belongs_to_the_tree_of_who_listens(process):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        assert port_owner(port, os.getpid()) is True
        assert port_owner(port, process().pid) is False


CHILD = """
import os, socket, sys
server = socket.create_server(("127.0.0.1", 0))
if os.fork():
    server.close()
else:
    print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""


def test_a_port_that_only_a_child_listens_on_is_ours_too(python, process):
    parent = python(CHILD)
    port = int(parent.stdout.readline())

    assert port_owner(port, parent.pid) is True
    assert port_owner(port, process().pid) is False


def test_a_port_on_which_nobody_listens_has_no_owner():
    assert port_owner(free_port(), os.getpid()) is None


def test_a_server_that_nobody_answers_for_is_not_healthy():
    assert ready.is_healthy(free_port(), timeout_s=5) is False


@pytest.fixture
def answer(monkeypatch):
    """Let the server answer with this; what it is asked is kept."""
    asked = []

    def answer(status, body):
        def request(*words, **_options):
            asked.append(words[1:])
            return status, body

        monkeypatch.setattr(ready, "request", request)

    answer.asked = asked
    return answer


@pytest.mark.parametrize(
    ("states", "more"),
    [
        ([{"effective_max_running_requests_per_dp": 7, "x": 1}] * 2, 7),
        ([{}], None),
        ([7], None),
        ([], None),
        (None, None),
    ],
)
def test_of_what_a_server_says_no_list_is_kept_but_the_cap_of_a_rank(states, more):
    info = {"dp_size": 2, "internal_states": states, "argv": ["a"]}
    kept = {name: value for name, value in ready.kept_info(info).items() if value is not None}

    cap = {} if more is None else {"effective_max_running_requests_per_dp": more}
    assert kept == {"dp_size": 2, **cap}


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False), (201, False)])
def test_healthy_is_a_health_of_200(answer, status, healthy):
    answer(status, b"")

    assert ready.is_healthy(1, timeout_s=1) is healthy
    assert answer.asked == [("GET", "/health")]


def test_one_real_token_is_proof(answer):
    answer(200, b'{"text": "w", "meta_info": {"completion_tokens": 1}}')

    assert ready.generate_one_token(1, timeout_s=1) is None
    ((method, path, body),) = answer.asked
    assert (method, path) == ("POST", "/generate")
    assert body["sampling_params"] == {
        "max_new_tokens": 1,
        "temperature": 0,
        "ignore_eos": True,
    }
    assert all(isinstance(token, int) for token in body["input_ids"])  # no tokenizer takes part


def test_an_answer_that_does_not_count_its_tokens_cannot_be_measured(answer):
    answer(200, b'{"text": "w", "meta_info": {"id": "1"}}')

    with pytest.raises(NotOurs) as caught:
        ready.generate_one_token(1, timeout_s=1)

    assert caught.value.args[0] == "wrong_server"
    assert "do not count their tokens" in caught.value.args[1]


@pytest.mark.parametrize(
    ("status", "body", "want"),
    [
        (503, b"busy", "/generate answered 503: busy"),
        (200, b'{"error": {"message": "boom"}}', "/generate gave None tokens, 1 was asked for"),
        (200, b'{"meta_info": {"completion_tokens": 0}}', "/generate gave 0 tokens"),
    ],
)
def test_anything_else_than_one_token_is_none(answer, status, body, want):
    answer(status, body)

    with pytest.raises(OSError, match=want):
        ready.generate_one_token(1, timeout_s=1)
