"""Whatever stops a campaign: no server is left, nothing finished is lost, the next run goes on."""

import os
import signal
from pathlib import Path

import pytest

from lab import Lab, wait_for

pytestmark = pytest.mark.workflow

SLOW = "{standin_tpot_ms: [20], standin_stop_ms: [0, 1]}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_to_snakemake_while_a_point_is_measured(lab: Lab, number: signal.Signals) -> None:
    lab.campaign(SLOW, waves=0, output_len=16)
    snakemake = lab.start()
    lab.await_event("point", "c0002")

    # Ctrl-C reaches the whole foreground group; the others are sent to Snakemake alone
    if number == signal.SIGINT:
        os.killpg(snakemake.pid, number)
    else:
        snakemake.send_signal(number)

    assert snakemake.wait(60) != 0
    wait_for(lambda: lab.processes() == [], "no process of the campaign is left", 30)
    if number in (signal.SIGINT, signal.SIGTERM):
        output = (lab.folder / "out.txt").read_text()
        assert f"stopped: the campaign was stopped by signal {number:d}; the next" in output
        assert "Traceback" not in output
    first = lab.root / "history/standin-stop-ms-0-standin-tpot-ms-20/launch-1/1"
    assert (first / "points/c0001-i8-o16-random-ids.json").exists()
    assert not list(lab.root.rglob("*.tmp"))

    run = lab.snakemake()

    assert run.returncode == 0, run.stdout
    current = [row for row in lab.points() if row["current"]]
    assert [row["status"] for row in current] == ["ok"] * 4
    kept = next(row for row in lab.points() if not row["current"] and row["status"] == "ok")
    assert (kept["attempt"], kept["concurrency"]) == (1, 1)


def test_a_signal_while_the_server_starts_leaves_nothing(lab: Lab) -> None:
    lab.campaign("{standin_ready_ms: [60000]}")
    snakemake = lab.start()
    lab.await_event("starting")

    os.killpg(snakemake.pid, signal.SIGINT)

    assert snakemake.wait(60) != 0
    wait_for(lambda: lab.processes() == [], "no process of the campaign is left", 30)
    assert not (lab.root / "cells").exists() or not list(lab.root.glob("cells/*/*/server.json"))


def test_what_stopped_another_invocation_does_not_stop_this_one(lab: Lab) -> None:
    """A job that a killed Snakemake has left behind may still say that its campaign stops."""
    lab.campaign(SLOW, waves=0)
    snakemake = lab.start()
    lab.await_event("starting")
    logs = lab.root / "logs"
    before = sorted(path.name for path in logs.iterdir())

    for name in ("stopping", "stopping-1-1"):
        (logs / name).write_text("the Snakemake process is gone\n")

    assert snakemake.wait(120) == 0, before
    assert [row["status"] for row in lab.points()] == ["ok"] * 4


def test_a_killed_job_frees_its_server_and_stops_the_campaign(lab: Lab) -> None:
    lab.campaign(SLOW, waves=0, output_len=16)
    snakemake = lab.start()
    lab.await_event("point", "c0002")

    (job,) = [
        int(entry)
        for entry in os.listdir("/proc")
        if entry.isdecimal() and _is_benchmark_job(entry, str(lab.folder))
    ]
    os.kill(job, signal.SIGKILL)

    assert snakemake.wait(60) != 0
    wait_for(lambda: lab.processes() == [], "no process of the campaign is left", 30)
    assert lab.snakemake().returncode == 0
    assert all(row["status"] == "ok" for row in lab.points() if row["current"])


def _is_benchmark_job(pid: str, folder: str) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    script = words[1].decode() if len(words) > 1 else ""
    return script.startswith(folder) and script.endswith(".benchmark.py")
