"""The lock-step server alone, and our default client against it: both count the same."""

import http.client
import json
import os
import sys
from pathlib import Path

import pytest

from perf.client_accuracy import clients
from perf.lockstep.server import Lockstep
from perf.lockstep.trial import Bench, run_trial

ENGINE = Path(__file__).parents[3] / ".engines/sglang-cpu/bin/python"
CORE = min(os.sched_getaffinity(0))


@pytest.fixture
def lockstep(program):
    with Lockstep(program, tick_ms=5, first_ms=10, model_path="/m", core=CORE) as server:
        yield server


def ask(server, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request(method, path, body)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def generate(server, tokens):
    body = {"input_ids": [5, 6, 7], "sampling_params": {"max_new_tokens": tokens}, "stream": True}
    return ask(server, "POST", "/generate", json.dumps(body))


def test_every_event_holds_the_text_so_far(lockstep):
    status, text = generate(lockstep, 3)
    *events, done, end = text.split("\n\n")
    events = [json.loads(event.removeprefix("data: ")) for event in events]

    assert (status, done, end) == (200, "data: [DONE]", "")
    assert [event["text"] for event in events] == [
        "w00002",
        "w00002 w00003",
        "w00002 w00003 w00004",
    ]
    assert events[-1]["output_ids"] == [2, 3, 4]
    assert [event["meta_info"]["completion_tokens"] for event in events] == [1, 2, 3]
    assert [event["meta_info"]["finish_reason"] for event in events] == [
        None,
        None,
        {"type": "length", "length": 3},
    ]


def test_the_record_has_a_time_for_every_token_and_no_two_in_a_tick(lockstep):
    generate(lockstep, 4)
    generate(lockstep, 2)
    record = lockstep.stop()

    assert [(one.prompt_tokens, one.asked, len(one.sent_us)) for one in record.requests] == [
        (3, 4, 4),
        (3, 2, 2),
    ]
    for one in record.requests:
        assert one.sent_us[0] >= one.arrived_us + 10_000
        assert list(one.sent_us) == sorted(set(one.sent_us))
    assert record.ticks >= 6


def test_a_client_that_goes_away_gets_no_more_tokens(lockstep):
    connection = http.client.HTTPConnection("127.0.0.1", lockstep.port, timeout=10)
    connection.request("POST", "/generate", '{"sampling_params": {"max_new_tokens": 4000}}')
    connection.getresponse().readline()
    connection.close()
    generate(lockstep, 2)
    record = lockstep.stop()

    assert 1 <= len(record.requests[0].sent_us) < 4000
    assert len(record.requests[1].sent_us) == 2


@pytest.mark.parametrize("path", ["/health", "/server_info", "/get_model_info", "/v1/models"])
def test_what_clients_ask_before_and_after_is_json(lockstep, path):
    status, text = ask(lockstep, "GET", path)

    assert status == 200 and isinstance(json.loads(text), dict)


def test_the_model_is_where_it_is_said_to_be(lockstep):
    assert json.loads(ask(lockstep, "GET", "/model_info")[1])["model_path"] == "/m"


def test_a_path_that_is_not_known_is_not_found(lockstep):
    assert ask(lockstep, "GET", "/metrics")[0] == 404


@pytest.mark.engine
@pytest.mark.skipif(
    not ENGINE.exists() or sys.version_info[:2] != (3, 11), reason="needs the CPU engine"
)
def test_our_default_client_counts_what_the_server_sent(program, tmp_path):
    rust, _ = clients()
    bench = Bench(program, str(tmp_path), CORE, max(os.sched_getaffinity(0)), 10, 10, tokens=8)

    for _round in range(2):
        trial = run_trial(bench, rust, 8)

        assert (trial.truth.requests, trial.truth.tokens) == (8, 64)
        # generous: the tests may run on a busy machine; the bench itself looks closer
        assert trial.errors.ttft_ms == pytest.approx(0, abs=500)
        assert trial.errors.tpot_percent == pytest.approx(0, abs=200)
        assert trial.use.cpu_s > 0 and trial.use.load_s > 0
