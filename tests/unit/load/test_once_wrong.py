"""Numbers and flags that once were wrong: ranks, damaged lines, odd loads."""

import json

import pytest

from builders import client_line
from judged import flags
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.load.offer import Offer, point_offer
from sgmatrix.load.prompts import write_prompts
from sgmatrix.load.result import request_rows, summarise
from sgmatrix.load.serverview import server_view
from sgmatrix.load.surroundings import surroundings
from sgmatrix.node import batchlog
from sgmatrix.node.batchlog import batch_line, batch_lines

AT = "[2026-11-30 10:00:%02d%s] "


def decode_text(second, rank, running, rate, queued=0):
    return (
        AT
        % (second, rank)
        + f"Decode batch, #running-req: {running}, #token: 100, token usage: 0.10, "
        f"cuda graph: True, gen throughput (token/s): {rate:.2f}, #queue-req: {queued}"
    )


def log(tmp_path, *lines):
    path = tmp_path / "server.log"
    path.write_text("\n".join(lines) + "\n")
    return batch_lines(path)


# --- tensor and pipeline ranks -----------------------------------------------------------------


def test_a_retraction_that_every_tensor_rank_logs_counts_once(tmp_path):
    """scheduler.py:4534 of 0.5.23 logs it on every rank; batch lines come from rank 0 alone."""
    lines = log(
        tmp_path,
        *(
            AT % (1, f" TP{rank}") + "KV cache pool is full. Retract requests. #retracted_reqs: 3, "
            "#new_tokens_gained: 900, #new_token_ratio: 0.5000 -> 0.9000"
            for rank in range(8)
        ),
    )
    assert server_view(lines, 64).retracted == 3


def test_pipeline_ranks_are_one_server_of_micro_batches(tmp_path):
    """Both PP ranks log; `#running-req` is of one micro batch, the rate is of all of them.

    64 streams at 25 ms a token in 2 micro batches of 32, 2560 tokens/s. Seen on the real engine,
    tp1pp2, 8 streams: `#running-req: 2` (4 micro batches), server_tpot_ms 13.9 where it was 50.1.
    What cannot be told may be None.
    """
    lines = log(
        tmp_path,
        *(
            decode_text(second, f" PP{rank} TP0", 32, 64 / 0.025)
            for second in range(1, 9)
            for rank in (0, 1)
        ),
    )
    view = server_view(lines, 0.95 * 64)
    assert view.tpot_ms is None or view.tpot_ms == pytest.approx(25, rel=0.02)
    assert view.running_mean is None or view.running_mean == pytest.approx(64)
    assert view.steps is None
    assert flags(client_line(8, itl_s=0.025), view=view) == []


def test_the_peak_of_ranks_that_speak_in_other_seconds_is_not_that_of_their_first_lines(tmp_path):
    lines = log(
        tmp_path,
        decode_text(1, " DP0 TP0", 8, 10),  # these rates count the idle time before
        decode_text(1, " DP1 TP0", 8, 10),
        *(decode_text(s, " DP0 TP0", 8, 500) for s in (2, 4, 6, 8)),
        *(decode_text(s, " DP1 TP0", 8, 500) for s in (3, 5, 7, 9)),
    )
    peak = server_view(lines, 16).peak_output_tok_s
    assert peak is None or peak >= 1000


# --- implausible on healthy servers --------------------------------------------------------------


def test_first_tokens_are_not_in_the_server_s_rate():
    """One stream, 4 tokens each 10 ms apart, TTFT 10 ms: 100 tok/s at the client; the decode
    lines count 3 of the 4 (the first comes from the prefill): 75 tok/s. All is well."""
    requests = 60
    line = client_line(requests, tokens=4, ttft_s=0.01, itl_s=0.01, duration_s=requests * 0.04)
    view = {"peak_output_tok_s": 75.0, "decode_lines": 4, "rank_lines": 4}
    assert flags(line, view=view, point={"concurrency": 1}) == []


# --- open loop -----------------------------------------------------------------


@pytest.mark.parametrize("view", [{}, {"decode_lines": 10, "queued_share": 0, "queued_max": 0}])
def test_a_burst_that_is_admitted_at_once_is_not_limited_by_its_rate(view):
    """64 requests within 64 ms, done after 10 s; the server logs its batches, or does not."""
    line = client_line(64, tokens=4, ttft_s=5.0, itl_s=1.66, duration_s=10.0)

    assert flags(line, point={"concurrency": None, "request_rate": 1000.0}, view=view) == []


# --- the log -----------------------------------------------------------------


def test_a_retraction_beyond_the_slice_is_seen(tmp_path, monkeypatch):
    """A log of 64 MiB and more is that of `--log-requests` with long prompts."""
    monkeypatch.setattr(batchlog, "_PIECE_BYTES", 2000)
    noise = (AT % (1, "")) + "Receive: obj=GenerateReqInput(" + "1, " * 1000 + ")"
    full = (AT % (2, "")) + "KV cache pool is full. Retract requests. #retracted_reqs: 3"
    lines = log(tmp_path, decode_text(1, "", 8, 100), noise, full)
    assert server_view(lines, 8).retracted == 3


def test_a_line_whose_time_is_none_is_no_crash():
    text = decode_text(1, "", 8, 100).replace("2026-11-30", "2026-13-45")
    assert batch_line(text) is None


def test_a_prompt_that_quotes_a_log_is_no_batch():
    quoted = decode_text(1, "", 999, 1e6)
    text = (AT % (3, "")) + f"Receive: obj=GenerateReqInput(text='{quoted}')"
    assert batch_line(text) is None


# --- requests -----------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"ttfts": ["0.1", 0.1]},
        {"itls": [[None], [0.1]]},
        {"itls": [0.1, 0.1]},
        {"output_lens": ["4", 4]},
        {"input_lens": ["16", 16]},
    ],
)
def test_a_line_with_other_types_is_refused_not_a_traceback(change):
    line = client_line(2) | change
    with pytest.raises(SgmatrixError, match="the client's line is damaged") as caught:
        request_rows(line, 2, 4)

    assert caught.value.code == "client_crash"


def test_a_duration_that_is_a_text_is_none():
    assert summarise(request_rows(client_line(2), 2, 4), "1.0")["duration_s"] is None


def test_a_request_whose_tokens_came_in_one_piece_has_not_kept_a_tpot_that_nobody_knows():
    from sgmatrix.load.metrics import is_good

    (row,) = request_rows(client_line(1, tokens=100) | {"itls": [[]]}, 1, 100)
    assert row["tpot_ms"] is None
    assert not is_good(row, {"tpot_ms": 10.0})


# --- prompts -----------------------------------------------------------------


def test_a_file_of_prompts_that_changed_since_the_plan_is_refused(tmp_path):
    source = tmp_path / "mine.jsonl"
    source.write_text('{"prompt": "a"}\n{"prompt": "b"}\n')
    asked = Offer(
        "custom", 1, 8, 8, 2, seed=1, prompts={"path": str(source), "sha256": "0" * 64, "count": 2}
    )
    with pytest.raises(SgmatrixError):
        write_prompts(asked, tmp_path / "p.jsonl")


def test_a_file_of_prompts_that_vanished_is_of_the_environment(tmp_path):
    from sgmatrix.core.reasons import is_environment

    gone = {"path": str(tmp_path / "gone.jsonl"), "sha256": "0" * 64, "count": 2}
    with pytest.raises(SgmatrixError) as refusal:
        write_prompts(Offer("custom", 1, 8, 8, 2, seed=1, prompts=gone), tmp_path / "p.jsonl")
    assert is_environment(refusal.value.code)


def test_shared_prefixes_offer_about_as_many_requests_as_were_planned():
    point = {
        "dataset": "shared-prefix", "concurrency": 1, "requests": 8, "input_len": 16,
        "output_len": 4, "seed": 1, "prompts": {"groups": 512, "prefix_len": 8},
    }  # fmt: skip
    assert point_offer(point, {}).requests <= 2 * 8


# --- telemetry -----------------------------------------------------------------


def test_power_at_a_slow_pace_is_the_counter_s(tmp_path):
    """`telemetry.hz` may be 0.25; a counter may be read over any gap."""
    file = tmp_path / "telemetry.jsonl"
    file.write_text(
        "".join(
            json.dumps(
                {"t": t, "host": {"foreign_cpu_cores": 0.0}, "interval_s": 4.0,
                 "gpus": {"0": {"t": t, "power_w": 100.0, "energy_j": 100.0 * t}}}
            )
            + "\n"
            for t in range(0, 104, 4)
        )
    )  # fmt: skip
    seen = surroundings(file, (21.0, 99.0), hz=0.25, devices=["gpu-0"])
    assert seen.power_w_mean == pytest.approx(100.0)


def test_the_same_prompts_at_another_path_are_the_same_load(tmp_path):
    """`load.path` is absolute in the point's key: a project that moves measures all again."""
    from sgmatrix.plan.load_parts import Load
    from sgmatrix.plan.prompts import prompt_facts

    load = Load(dataset="custom", path="p.jsonl", concurrency=[1], input_len=8, output_len=4)
    facts = []
    for name in ("here", "there"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "p.jsonl").write_text('{"prompt": "a"}\n')
        facts.append(prompt_facts(load, folder))
    keys = [{k: v for k, v in fact.items() if k != "path"} for fact in facts]
    assert keys[0] == keys[1]


def test_a_long_launch_is_read_once_per_point(tmp_path, monkeypatch):
    """8 GPUs named by UUID or index: the whole file is parsed 9 times for one point."""
    from sgmatrix.load import surroundings as module

    reads = []
    read_facts, read_samples = module.read_facts, module.read_samples
    monkeypatch.setattr(module, "read_facts", lambda p: reads.append(1) or read_facts(p))
    monkeypatch.setattr(
        module, "read_samples", lambda *a, **k: reads.append(1) or read_samples(*a, **k)
    )
    file = tmp_path / "telemetry.jsonl"
    file.write_text(json.dumps({"t": 1.0, "host": {}}) + "\n")
    surroundings(file, (0.5, 2.0), hz=2, devices=[f"gpu-{n}" for n in range(8)])
    assert len(reads) <= 2


def test_more_never_ran_at_once_than_were_offered(tmp_path):
    """Two data-parallel ranks whose shares of 64 streams move: 40 + 24, then 24 + 40."""
    lines = log(
        tmp_path,
        decode_text(1, " DP0 TP0", 40, 500),
        decode_text(1, " DP1 TP0", 24, 500),
        decode_text(2, " DP0 TP0", 24, 500),
        decode_text(2, " DP1 TP0", 40, 500),
    )
    assert server_view(lines, 60).running_max == 64


def test_who_waited_is_added_up_over_ranks_as_who_ran_is(tmp_path):
    lines = log(
        tmp_path, *(decode_text(1, f" DP{rank} TP0", 4, 500, queued=10) for rank in range(8))
    )
    view = server_view(lines, 100)
    assert (view.running_max, view.queued_max) == (32, 80)


def test_a_warm_up_wave_is_as_wide_as_an_open_loop_beside_a_single_stream():
    """`concurrency: [1]` and `request_rate: [100]`: the wave would be one request."""
    from sgmatrix.load.offer import wave_offer

    common = {"dataset": "random-ids", "input_len": 8, "output_len": 8, "seed": 1}
    points = [
        common | {"concurrency": 1, "request_rate": None},
        common | {"concurrency": None, "request_rate": 100.0, "max_concurrency": None},
    ]
    assert wave_offer(points, 0).concurrency >= 100


def test_an_open_loop_of_many_requests_is_not_said_to_have_them_all_in_flight(monkeypatch):
    """20 requests/s for 60 s where 4096 files may be open, as on many clusters."""
    import resource

    from sgmatrix.load import client

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    client._descriptors(Offer("random-ids", None, 8, 8, 1200, seed=1, request_rate=20.0))
