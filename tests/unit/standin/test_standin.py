"""The stand-in is what the tests of this project trust, so its own truth is tested first.

Life cycle, API as in SGLang 0.5.23, known times and counts, log lines. Faults: test_standin_faults.
"""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from standin.launcher import DEADLINE_S, STANDIN, alive, eventually, keeping_time, sse


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(STANDIN)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


# --- start ---------------------------------------------------------------------------------------


def test_version_is_found_in_the_metadata():
    code = "import importlib.metadata as m; print(m.version('sglang'))"

    assert run_python(code) == "0.5.23+standin"


def test_start_imports_nothing_heavy():
    code = "import sglang.standin_server, sys; print(*sys.modules)"
    heavy = {"asyncio", "ssl", "http.server", "email", "logging", "dataclasses", "subprocess"}

    assert heavy.isdisjoint(run_python(code).split())


def test_unknown_flag_ends_as_argparse_does(launch):
    standin = launch("--enable-oea", wait=False)

    assert standin.exit_code() == 2
    first, *_, last = standin.log().splitlines()
    assert first.startswith("usage: sglang serve [-h] --model-path MODEL_PATH")
    assert last == "sglang serve: error: unrecognized arguments: --enable-oea"


def test_port_is_closed_then_health_is_503_then_200(launch):
    standin = launch("--standin-open-ms", "100", "--standin-ready-ms", "1000", wait=False)
    seen = [standin.health()]
    models = None
    while seen[-1] != 200:
        seen.append(standin.health())
        if seen[-1] == 503 and models is None:
            models = standin.ask("GET", "/v1/models")[0]
            refused = standin.generate()[0]

    assert sorted(set(seen), key=seen.index) == [None, 503, 200]
    assert (models, refused) == (200, 503)  # SB01: the model list answers too early
    ready = standin.events("ready")[0]
    assert 0.99 <= ready["since_process_start_s"] < 1.5  # the kernel keeps process starts to 10 ms


def test_health_can_take_its_time_as_in_the_real_server(launch):
    standin = launch("--standin-health-ms", "300", wait=False)
    eventually(lambda: standin.events("ready"), "ready")
    began = time.monotonic()

    assert standin.health() == 200
    assert time.monotonic() - began >= 0.3


def test_ready_lines_stand_in_the_log_in_the_order_of_the_real_server(launch):
    standin = launch("--tp", "2")

    marks = [
        "[TIME TP0] Load weight begin.",
        "[TIME TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 880000",
        f"[TIME] INFO:     Uvicorn running on {standin.url} ",
        "[TIME] The server is fired up and ready to roll!",
    ]
    log = re.sub(r"\d{4}(-\d\d){2} (\d\d:?){3}", "TIME", standin.log())
    places = [log.find(mark) for mark in marks]
    assert -1 not in places
    assert places == sorted(places)


def test_log_level_warning_silences_information(launch):
    standin = launch("--log-level", "warning")
    standin.generate()

    assert "fired up" not in standin.log()
    assert "GET /health" not in standin.log()


def test_port_in_use_is_one_line_and_exit_code_1(launch):
    first = launch()
    second = launch(port=first.port, wait=False)

    assert second.exit_code() == 1
    where = f"('127.0.0.1', {first.port}): address already in use"
    assert f"[Errno 98] error while attempting to bind on address {where}" in second.log()
    assert first.health() == 200


# --- what it says about itself -------------------------------------------------------------------


def test_server_info_echoes_the_flags_under_the_names_of_sglang(launch):
    flags = (
        "--tp 4 --pp-size 2 --dp 2 --ep 8 --mem-fraction-static 0.9 --enable-dp-attention "
        "--num-continuous-decode-steps 8 --max-total-tokens 99"
    )
    standin = launch(*flags.split())
    info = standin.json("/server_info")

    want = {"tp_size": 4, "pp_size": 2, "dp_size": 2, "ep_size": 8, "mem_fraction_static": 0.9}
    want |= {"enable_dp_attention": True, "num_continuous_decode_steps": 8, "port": standin.port}
    want |= {"model_path": "tiny", "served_model_name": "nonce", "version": "0.5.23+standin"}
    assert {key: info[key] for key in want} == want
    assert info["max_total_num_tokens"] == 99  # the cap wins over the fraction
    assert len(info["internal_states"]) == 2
    assert "--mem-fraction-static 0.9" in info["launch_command"]
    assert info.keys() >= {"startup_time", "host", "max_running_requests"}
    assert standin.json("/get_server_info") == info


def test_memory_fraction_sizes_the_pool_when_nothing_caps_it(launch):
    info = launch("--mem-fraction-static", "0.5").json("/server_info")

    assert info["max_total_num_tokens"] == 500_000


def test_arguments_from_the_environment_do_not_show_in_the_launch_command(launch):
    standin = launch(env={"STANDIN_ARGS": "--standin-fault wrong_version:9.9"})
    info = standin.json("/server_info")

    assert info["version"] == "9.9"
    assert "wrong_version" not in info["launch_command"]


def test_model_routes_name_the_served_model(launch):
    standin = launch("--context-length", "4096")

    assert standin.json("/model_info")["model_path"] == "tiny"
    assert standin.json("/get_model_info")["served_model_name"] == "nonce"
    model = standin.json("/v1/models")["data"][0]
    assert (model["id"], model["max_model_len"]) == ("nonce", 4096)


def test_metrics_exist_only_when_they_are_enabled(launch):
    assert launch().ask("GET", "/metrics")[0] == 404
    status, body = launch("--enable-metrics").ask("GET", "/metrics")
    assert status == 200
    assert b'sglang:num_running_reqs{model_name="nonce"} 0' in body


def test_unknown_route_and_wrong_method(launch):
    standin = launch()

    assert standin.ask("GET", "/get_load")[0] == 404
    assert standin.ask("GET", "/generate")[0] == 405


# --- generation ----------------------------------------------------------------------------------


def test_native_stream_is_cumulative_and_ends_with_done(launch):
    status, body = launch().generate(tokens=5, prompt=[11, 12, 13])
    *chunks, done = sse(body)

    assert (status, done) == (200, "[DONE]")
    assert [c["text"] for c in chunks][:2] == ["tok", "tok tok"]
    assert [len(c["output_ids"]) for c in chunks] == [1, 2, 3, 4, 5]
    meta = [c["meta_info"] for c in chunks]
    assert [m["completion_tokens"] for m in meta] == [1, 2, 3, 4, 5]
    assert {m["prompt_tokens"] for m in meta} == {3}
    assert [m["finish_reason"] for m in meta[:-1]] == [None] * 4
    assert meta[-1]["finish_reason"] == {"type": "length", "length": 5}
    assert meta[-1]["e2e_latency"] > 0


def test_native_answer_without_stream_is_the_last_chunk(launch):
    status, body = launch().generate(tokens=3, stream=False)
    answer = json.loads(body)

    assert status == 200
    assert answer["text"] == "tok tok tok"
    assert answer["meta_info"]["completion_tokens"] == 3


def test_completions_stream_pieces_and_a_usage_event(launch):
    asked = {"prompt": [1, 2], "max_tokens": 3, "stream": True}
    asked["stream_options"] = {"include_usage": True}
    _, body = launch().ask("POST", "/v1/completions", asked)
    *chunks, usage, done = sse(body)

    assert done == "[DONE]"
    assert [c["choices"][0]["text"] for c in chunks] == ["tok", " tok", " tok"]
    assert [c["choices"][0]["finish_reason"] for c in chunks] == [None, None, "length"]
    assert usage["usage"] == {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}


def test_chat_streams_role_pieces_and_reason(launch):
    asked = {"messages": [{"role": "user", "content": "hello there"}], "max_tokens": 2}
    standin = launch()
    _, body = standin.ask("POST", "/v1/chat/completions", {**asked, "stream": True})
    *chunks, done = sse(body)

    assert done == "[DONE]"
    deltas = [c["choices"][0]["delta"] for c in chunks]
    assert deltas == [
        {"role": "assistant", "content": ""},
        {"content": "tok"},
        {"content": " tok"},
        {},
    ]
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    _, body = standin.ask("POST", "/v1/chat/completions", asked)
    assert json.loads(body)["choices"][0]["message"]["content"] == "tok tok"


def test_stream_interval_sends_the_first_token_alone(launch):
    _, body = launch("--stream-interval", "4").generate(tokens=10)
    *chunks, _ = sse(body)

    assert [c["meta_info"]["completion_tokens"] for c in chunks] == [1, 5, 9, 10]


def test_bad_bodies_are_answered_with_400(launch):
    standin = launch()

    for body in ({}, {"text": ""}, {"text": ["a", "b"]}, [1], {"input_ids": ["a"]}):
        assert standin.ask("POST", "/generate", body)[0] == 400
    assert standin.ask("POST", "/generate", {"text": "a", "sampling_params": [1]})[0] == 400
    assert standin.ask("POST", "/v1/chat/completions", {"messages": ["a"]})[0] == 400
    assert standin.events("request") == []


def test_too_long_a_request_is_an_error_inside_a_200_stream(launch):
    standin = launch("--context-length", "10")
    status, body = standin.generate(tokens=9)

    error, done = sse(body)
    assert (status, done) == (200, "[DONE]")
    assert "maximum context length of 10 tokens" in error["error"]["message"]
    assert standin.generate(tokens=9, stream=False)[0] == 400


def test_one_connection_serves_one_request_after_another(launch):
    body = json.dumps({"text": "a", "stream": True, "sampling_params": {"max_new_tokens": 2}})
    counts = []
    with launch().connect() as connection:
        for _ in range(3):
            connection.request("POST", "/generate", body)
            counts.append(len(sse(connection.getresponse().read())))
        local = connection.sock.getsockname()
        connection.request("GET", "/health")

        assert counts == [3, 3, 3]
        assert connection.getresponse().status == 200
        assert connection.sock.getsockname() == local  # never reopened


def test_two_requests_in_one_packet_are_answered_in_order(launch):
    standin = launch()
    body = '{"text":"a","stream":true,"sampling_params":{"max_new_tokens":3}}'
    first = f"POST /generate HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n{body}"
    second = "GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", standin.port), DEADLINE_S) as client:
        client.sendall((first + second).encode())
        answer = b""
        while data := client.recv(65536):
            answer += data

    stream, models = answer.split(b"0\r\n\r\n", 1)
    assert stream.endswith(b"data: [DONE]\n\n\r\n")
    assert models.startswith(b"HTTP/1.1 200 OK")
    assert models.endswith(b"]}")


def test_a_slow_reader_still_gets_every_token(launch):
    standin = launch("--standin-tpot-ms", "0.01", "--standin-ttft-ms", "0")
    body = {"text": "a", "stream": True, "sampling_params": {"max_new_tokens": 3000}}
    with standin.connect() as connection:
        connection.request("POST", "/generate", json.dumps(body))
        response = connection.getresponse()
        eventually(lambda: standin.events("finished"), "all produced, 25 MB of them unread")

        assert len(sse(response.read())) == 3001


# --- truth: times, slots, cache ------------------------------------------------------------------


def together(standin, count: int, tokens: int) -> None:
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda i: standin.generate(tokens, prompt=f"prompt {i}"), range(count)))


def test_time_per_token_is_the_tick(launch):
    standin, _ = keeping_time(launch, "--standin-tpot-ms", "10", work=lambda s: together(s, 4, 41))
    firsts = {event["n"]: event["t"] for event in standin.events("first")}

    assert len(firsts) == 4
    for event in standin.events("finished"):
        assert (event["tokens"], event["outcome"]) == (41, "ok")
        assert (event["t"] - firsts[event["n"]]) / 40 == pytest.approx(0.010, rel=0.05)


def test_tick_grows_with_the_running_requests(launch):
    flags = ("--standin-tpot-ms", "4", "--standin-tpot-per-req-ms", "3")
    standin, _ = keeping_time(launch, *flags, work=lambda s: together(s, 2, 41))
    first, last = standin.events("first")[-1]["t"], standin.events("finished")[0]["t"]

    assert (last - first) / 40 == pytest.approx(0.010, rel=0.1)  # 4 + 2 x 3


def test_first_token_comes_after_ttft_and_within_a_tick(launch):
    standin = launch("--standin-ttft-ms", "100", "--standin-tpot-ms", "5")
    standin.generate()
    waited = standin.events("first")[0]["t"] - standin.events("request")[0]["t"]

    assert 0.100 <= waited < 0.200


def test_requests_beyond_the_slots_wait(launch):
    standin = launch("--max-running-requests", "2", "--decode-log-interval", "1")
    together(standin, 6, tokens=20)

    assert standin.outcomes() == ["ok"] * 6
    assert max(event["running"] for event in standin.events("first")) == 2
    running = re.findall(r"Decode batch, #running-req: (\d+)", standin.log())
    queued = re.findall(r"gen throughput \(token/s\): [\d.]+, #queue-req: (\d+)", standin.log())
    assert (max(running), max(queued)) == ("2", "4")


def test_requests_beyond_the_kv_pool_wait(launch):
    standin = launch("--max-total-tokens", "50")
    together(standin, 3, tokens=20)  # each needs 2 + 20 tokens
    together(standin, 3, tokens=20)

    assert standin.outcomes() == ["ok"] * 6
    running = [event["running"] for event in standin.events("first")]
    assert (max(running[:3]), max(running[3:])) == (2, 2)  # the second time too: freed again


def test_decode_line_has_the_form_of_the_real_server(launch):
    standin = launch("--decode-log-interval", "10", "--device", "cpu", "--disable-cuda-graph")
    standin.generate(tokens=25)

    form = (
        r"Decode batch, #running-req: 1, #token: 1\d, token usage: 0\.00, cpu graph: False, "
        r"gen throughput \(token/s\): [\d.]+, #queue-req: 0"
    )
    assert re.search(form, standin.log())
    assert "Prefill batch, #new-seq: 1, #new-token: 3, #cached-token: 0, " in standin.log()


def test_first_requests_at_each_new_concurrency_are_cold(launch):
    standin = launch("--standin-cold-factor", "3", "--standin-cold-requests", "2")
    for _ in range(4):
        standin.generate(tokens=2)
    together(standin, 2, tokens=30)
    cold = [
        event["cold"] for event in sorted(standin.events("first"), key=lambda event: event["n"])
    ]

    assert cold[:4] == [True, True, False, False]
    assert cold[5]  # the second to run at the same time: a new concurrency


def test_a_cold_request_takes_the_factor_longer(launch):
    flags = ["--standin-tpot-ms", "8", "--standin-cold-factor", "4", "--standin-cold-requests", "1"]
    prompts = ("cold", "warm")
    standin, _ = keeping_time(
        launch, *flags, work=lambda s: [s.generate(21, prompt=prompt) for prompt in prompts]
    )
    cold, warm = (
        finished["t"] - first["t"]
        for first, finished in zip(standin.events("first"), standin.events("finished"), strict=True)
    )

    assert cold / warm == pytest.approx(4, rel=0.1)


def test_a_seen_prompt_is_cached_until_the_flush(launch):
    standin = launch("--standin-ttft-ms", "200", "--standin-hit-ttft-ms", "1")
    for _ in range(2):
        standin.generate()
    assert standin.ask("POST", "/flush_cache")[0] == 200
    standin.generate()
    firsts, requests = standin.events("first"), standin.events("request")

    assert [event["cached_tokens"] for event in firsts] == [0, 2, 0]
    waits = [f["t"] - r["t"] for f, r in zip(firsts, requests, strict=True)]
    assert waits[1] < 0.1 < min(waits[0], waits[2])


def test_a_cache_hit_does_not_wait_for_the_slow_prompt_before_it(launch):
    standin = launch("--standin-ttft-ms", "300", "--standin-hit-ttft-ms", "1")
    standin.generate(prompt="a known prompt")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(standin.generate, prompt="an unknown prompt")
        eventually(lambda: len(standin.events("request")) == 2, "the slow one is there")
        standin.generate(prompt="a known prompt")

    assert [event["n"] for event in standin.events("first")] == [1, 3, 2]


def test_disabled_radix_cache_never_hits(launch):
    standin = launch("--disable-radix-cache")
    for _ in range(2):
        standin.generate()

    assert [event["cached_tokens"] for event in standin.events("first")] == [0, 0]


def test_flush_is_refused_while_requests_run_and_waits_when_asked_to(launch):
    standin = launch("--standin-tpot-ms", "5")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(standin.generate, 60)
        eventually(lambda: standin.events("first"), "running")
        assert standin.ask("GET", "/flush_cache")[0] == 400
        assert standin.ask("POST", "/flush_cache?timeout=30")[0] == 200
        assert standin.outcomes() == ["ok"]
    assert [event["ok"] for event in standin.events("flush")] == [False, True]


def test_a_client_that_leaves_frees_its_slot(launch):
    standin = launch("--max-running-requests", "1", "--standin-tpot-ms", "5")
    body = {"text": "a", "stream": True, "sampling_params": {"max_new_tokens": 10_000}}
    with standin.connect() as connection:
        connection.request("POST", "/generate", json.dumps(body))
        with connection.getresponse() as response:
            response.read(1)
    standin.generate()

    assert standin.outcomes() == ["client_gone", "ok"]


# --- end -----------------------------------------------------------------------------------------


def test_sigterm_ends_with_exit_code_0_and_a_record(launch):
    standin = launch()
    standin.generate()
    scheduler = standin.events("start")[0]["scheduler_pid"]
    assert alive(scheduler)

    assert standin.stop() == 0
    assert not alive(scheduler)
    stop = standin.events("stop")[0]
    assert (stop["reason"], stop["code"], stop["requests"], stop["ticks"]) == ("sigterm", 0, 1, 4)
    assert "SIGTERM received." in standin.log()


def test_stop_takes_as_long_as_it_was_told_to(launch):
    standin = launch("--standin-stop-ms", "300")
    assert standin.stop() == 0

    assert standin.events("stop")[0]["t"] - standin.events("sigterm")[0]["t"] >= 0.3


def test_a_forgotten_stand_in_ends_by_itself(launch):
    standin = launch("--standin-life-s", "0.2", "--standin-fault", "ignore_sigterm", wait=False)

    assert standin.exit_code() == 0
    assert standin.events("stop")[0]["reason"] == "life"


def test_sigkill_takes_the_child_along(launch):
    standin = launch()
    scheduler = standin.events("start")[0]["scheduler_pid"]
    standin.process.kill()

    assert standin.exit_code() == -signal.SIGKILL
    eventually(lambda: not alive(scheduler), "child gone")
