"""Warm-up and load points: a real warden and server, the stand-in, and a made-up client."""

import json
import os
import signal
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from builders import History, campaign, campaign_data, client_line
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json, write_json
from sgmatrix.load import point as point_module
from sgmatrix.load import step as step_module
from sgmatrix.load import warmup as warmup_module
from sgmatrix.load.point import run_point
from sgmatrix.load.step import Step
from sgmatrix.load.warmup import run_warmup, why_cold
from sgmatrix.node import proc
from sgmatrix.node.launch import OWNER_VARIABLE, run_launch
from sgmatrix.node.server import Server
from sgmatrix.node.telemetry.samples import read_samples
from standin.launcher import alive, eventually

LOW, HIGH = "c0001-i16-o4-random-ids", "c0002-i16-o4-random-ids"  # 8 requests each


@pytest.fixture
def server_lives(monkeypatch):
    """Spare the time that a failed client gives the warden to notice a death."""
    for module in (step_module, point_module, warmup_module):
        monkeypatch.setattr(module, "CLOSING_S", 0.05)


@pytest.fixture
def launched(tmp_path, wardens, client):
    """Launch the stand-in with these flags; the campaign's client is the made-up one."""

    def launched(flags=None, **changes):
        # the made-up client starts within its window, and a busy machine keeps it waiting
        patient = {"max_client_delay_share": 1.0, "max_python_client_cpu_share": 1.0}
        data = campaign_data(**{"validity": patient, **changes})
        data["engines"]["standin"]["flags"] |= flags or {}
        history = History(tmp_path, campaign(**data))
        history.plan["client"] |= client.settings()
        write_json(history.layout.plan, history.plan)
        step = Step(history.layout, "tp1", "1", run_launch(history.layout, "tp1", "1"))
        warm = {"status": "ok", "waves_tok_s": [16.0, 16.0], "agree": True}
        write_json(step.folder / "warmup.json", warm)
        return step

    return launched


def closed(step):
    return Server.from_record(step.record).closed(20)


def events(step):
    lines = step.layout.events.read_text().splitlines()
    return [json.loads(line) for line in lines]


# --- warm-up -------------------------------------------------------------------------------------


def test_warm_up_runs_waves_of_the_hardest_load_until_two_agree(launched, client):
    client.answers(client_line(2, duration_s=0.5))  # 8 tokens in 0.5 s
    client.answers(client_line(2, duration_s=1.0), call=1)
    step = launched()
    record = run_warmup(step)

    assert (record["status"], record["agree"]) == ("ok", True)
    assert record["waves_tok_s"] == [8.0, 16.0, 16.0]
    assert read_json(step.folder / "warmup.json") == record
    calls = client.calls()
    assert {call["max-concurrency"] for call in calls} == {call["num-prompts"] for call in calls}
    assert calls[0]["max-concurrency"] == "2"
    measured = {point["seed"] for point in read_json(step.layout.plan)["launches"][0]["points"]}
    assert len({int(call["seed"]) for call in calls} - measured) == 3  # never the same prompts


def test_warm_up_is_bounded_when_the_waves_do_not_agree(launched, client):
    for call, duration in enumerate((1.0, 2.0, 4.0), 1):
        client.answers(client_line(2, duration_s=duration), call=call)
    record = run_warmup(launched(warmup={"max_waves": 3}))

    assert (record["status"], record["agree"]) == ("ok", False)
    assert record["waves_tok_s"] == [8.0, 4.0, 2.0]
    assert (record["request_s"], record["concurrency"]) == (0.5, 2)  # of the last wave
    assert why_cold(record) == "the last of 3 warm-up waves differ by 50 %"


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({}, "there was no warm-up"),
        ({"waves_tok_s": [], "agree": False}, "there was no warm-up"),
        ({"waves_tok_s": [8.0], "agree": False}, "there was one warm-up wave, and none to compare"),
        ({"waves_tok_s": [1.0, 8.0, 8.0], "agree": True}, None),
    ],
)
def test_a_server_is_warm_only_after_two_waves_that_agree(record, why):
    assert (why_cold(record) or "").startswith(why or "")
    assert (why_cold(record) is None) is (why is None)


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        (client_line(2, failed=2), "0 of 2 requests succeeded: Internal Server Error"),
        (client_line(3), "the client's line is not that of 2 requests: "),
        ("", "no output"),
    ],
    ids=["all failed", "another load's line", "no line"],
)
def test_a_warm_up_that_fails_is_a_record_and_no_exception(launched, client, line, detail):
    client.answers(line, requests=2)
    step = launched()
    record = run_warmup(step)

    assert (record["status"], record["reason"]) == ("failed", "client_crash")
    assert record["detail"].startswith(detail)
    assert read_json(step.folder / "warmup.json") == record


def test_a_client_that_fails_in_the_warm_up_has_no_wave_whatever_it_wrote(
    launched, client, server_lives
):
    client.does('echo broken; cat "line-$n.jsonl" > "$out"; exit 3')
    client.answers(client_line(2))
    record = run_warmup(launched())

    assert (record["status"], record["detail"]) == ("failed", "broken")
    assert record["waves_tok_s"] == []


def test_after_a_failed_launch_warm_up_and_points_are_skipped_with_its_reason(launched):
    step = launched({"no_such_flag": 1})
    warmup = run_warmup(step)
    record, rows = run_point(step, LOW, warmup["reason"])

    assert (warmup["status"], warmup["reason"]) == ("skipped", "config_rejected")
    assert (record["status"], record["reason"], record["asked"]) == (
        "skipped",
        "config_rejected",
        None,
    )
    assert rows == []
    assert pq.read_table(step.folder / "points" / f"{LOW}.requests.parquet").num_rows == 0


# --- a load point --------------------------------------------------------------------------------


def test_a_point_is_measured_recorded_and_its_requests_kept(launched, client):
    client.answers(client_line(8))
    step = launched()
    record, rows = run_point(step, LOW, None)

    planned = read_json(step.layout.plan)["launches"][0]["points"][0]
    assert (record["status"], record["reason"], record["validity"]) == ("ok", None, "valid")
    assert (record["asked"], record["completed"], record["failed"]) == (8, 8, 0)
    assert record["output_tok_s"] == 64.0  # 8 x 4 tokens in 0.5 s
    assert record["ttft_ms_p50"] == pytest.approx(10)
    assert record["cache_flushed"] is True
    assert (record["seed"], record["point_key"]) == (planned["seed"], planned["key"])
    assert client.calls()[0]["seed"] == str(planned["seed"])
    assert client.calls()[0]["base-url"].endswith(f":{step.record['live']['port']}")
    assert read_json(step.folder / "points" / f"{LOW}.json") == record
    kept = pq.read_table(step.folder / "points" / f"{LOW}.requests.parquet").to_pylist()
    assert [row["output_tokens"] for row in kept] == [4] * 8
    assert {row["attempt"] for row in kept} == {1}
    assert len(rows) == 8
    assert [event["event"] for event in events(step)][-2:] == ["point", "point_done"]


def test_after_the_last_point_the_server_is_asked_to_stop(launched, client):
    client.answers(client_line(8))
    step = launched()
    run_point(step, LOW, None)
    run_point(step, HIGH, None)

    assert closed(step)["detail"] == "the last load point is done"


def test_a_point_with_failed_requests_is_partial_and_keeps_the_first_error(
    launched, client, server_lives
):
    client.answers(client_line(8, failed=2))
    record, rows = run_point(launched(), LOW, None)

    assert (record["status"], record["validity"]) == ("ok", "partial")
    assert (record["completed"], record["failed"]) == (6, 2)
    assert record["detail"] == "Internal Server Error"
    assert [row["ok"] for row in rows] == [True] * 6 + [False] * 2


def test_a_cache_that_refuses_to_be_emptied_flags_the_point(launched, client):
    client.answers(client_line(8))
    record, _ = run_point(launched({"standin_fault": "flush_refused"}), LOW, None)

    assert (record["validity"], record["cache_flushed"]) == ("cache_hits", False)


def test_a_sampler_that_is_gone_is_missed(launched, client):
    client.answers(client_line(8))
    step = launched(telemetry={"hz": 10.0})
    file = step.folder / "telemetry.jsonl"
    eventually(lambda: read_samples(file), "a sample was taken")
    warden = step.record["live"]["warden"]["pid"]
    children = Path(f"/proc/{warden}/task/{warden}/children").read_text().split()
    (sampler,) = [int(p) for p in children if "sgmatrix.node.sampler" in proc.command_of(int(p))]
    os.kill(sampler, signal.SIGKILL)
    eventually(lambda: not alive(sampler), "it is gone")
    file.write_text("")  # as if it had been gone for long

    record, _ = run_point(step, LOW, None)

    assert (record["validity"], record["validity_detail"]) == (
        "no_telemetry",
        "no_telemetry: 0 % of the samples of host",
    )


def test_a_retraction_at_a_point_that_failed_spoils_the_later_ones(launched, client):
    step = launched()
    client.answers("no line\n", requests=8)
    failed, _ = run_point(step, LOW, None)
    with (step.folder / "server.log").open("a") as log:
        log.write(
            "[2026-11-20 10:00:52] KV cache pool is full. Retract requests. #retracted_reqs: 3\n"
        )
    client.answers(client_line(8))
    record, _ = run_point(step, HIGH, None)

    assert (failed["status"], failed.get("retracted")) == ("failed", None)
    assert record["validity"] == "cold"
    assert record["validity_detail"] == (
        "cold: requests were retracted since the warm-up, on this same server"
    )


def test_without_a_warm_up_a_point_is_cold(launched, client):
    client.answers(client_line(8))
    step = launched(warmup={"max_waves": 0})
    run_warmup(step)
    record, _ = run_point(step, LOW, None)

    assert (record["validity"], record["validity_detail"]) == ("cold", "cold: there was no warm-up")


@pytest.mark.parametrize(
    ("line", "does", "reason", "detail"),
    [
        (client_line(8, failed=8), "", "client_crash", "0 of 8 requests succeeded: Internal"),
        (client_line(7), "", "client_crash", "the client's line is not that of 8 requests"),
        ("", "echo boom", "client_crash", "boom"),
        (client_line(8), "echo bad; cat line-8.jsonl > $out; exit 2", "client_crash", "bad"),
    ],
    ids=["all failed", "another load's line", "no line", "exit code"],
)
def test_a_point_that_fails_is_a_record_and_no_exception(
    launched, client, server_lives, line, does, reason, detail
):
    client.answers(line, requests=8)
    client.does(does)
    step = launched()
    record, _ = run_point(step, LOW, None)

    assert (record["status"], record["reason"]) == ("failed", reason)
    assert record["detail"].startswith(detail)
    assert "output_tok_s" not in record
    assert read_json(step.folder / "points" / f"{LOW}.json") == record


def test_a_point_that_does_not_end_fails_at_its_deadline(launched, client):
    client.does("sleep 600")
    deadlines = {**campaign_data()["deadlines"], "point_s": 0.2}
    record, _ = run_point(launched(deadlines=deadlines), LOW, None)

    assert (record["status"], record["reason"]) == ("failed", "client_timeout")
    assert record["detail"] == "not finished after 0.2 s"


def test_a_server_that_dies_under_load_is_the_reason_and_not_the_client(launched, client, tmp_path):
    step = launched()
    client.answers(client_line(8, failed=3))
    client.does(f"kill -9 {step.record['live']['server']['pid']}")
    record, rows = run_point(step, LOW, None)

    assert (record["status"], record["reason"]) == ("failed", "server_crash")
    assert (record["completed"], record["failed"]) == (5, 3)
    assert "output_tok_s" not in record  # what was answered is no measurement of the load
    assert len(rows) == 8


def test_a_client_that_somebody_ended_is_a_disturbance(launched, client, server_lives):
    step = launched()
    client.does("kill -9 $$; sleep 5")

    with pytest.raises(SgmatrixError, match="the load client was ended by signal 9") as caught:
        run_point(step, LOW, None)

    assert caught.value.code == "interrupted"
    assert not (step.folder / "points").exists()


def test_an_engine_that_dies_behind_a_living_front_end_is_the_reason_of_its_failed_requests(
    launched, client
):
    step = launched({"standin_fault": "scheduler_dies_after:1"})
    client.answers(client_line(8, failed=7))
    url = f"http://127.0.0.1:{step.record['live']['port']}/generate"
    body = '{\\"input_ids\\": [1], \\"sampling_params\\": {\\"max_new_tokens\\": 1}}'
    code = f"import urllib.request as u; u.urlopen('{url}', b'{body}', 5)"
    client.does(f"""'{sys.executable}' -c "{code}" 2>/dev/null""")

    record, rows = run_point(step, LOW, None)

    assert (record["status"], record["reason"]) == ("failed", "server_crash")
    assert record["detail"].startswith("AttributeError: ")
    assert (record["completed"], record["failed"], len(rows)) == (1, 7, 8)


def test_a_server_that_died_before_a_point_skips_it(launched, client):
    step = launched()
    server = Server.from_record(step.record).process
    os.kill(server.pid, signal.SIGKILL)
    assert proc.wait_gone(server, 20)
    record, rows = run_point(step, LOW, None)

    assert (record["status"], record["reason"], rows) == ("skipped", "server_crash", [])


def test_a_campaign_that_ends_during_a_point_leaves_no_record(
    launched, client, process, monkeypatch
):
    owner = process()
    monkeypatch.setenv(OWNER_VARIABLE, json.dumps(proc.identify(owner.pid).record()))
    step = launched()
    client.does(f"kill -9 {owner.pid}; sleep 600")

    with pytest.raises(SgmatrixError, match="the Snakemake process is gone") as caught:
        run_point(step, LOW, None)

    assert caught.value.code == "interrupted"
    assert not (step.folder / "points").exists()
