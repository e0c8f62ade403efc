"""A disturbance is one line that names the thing and the mend; nothing is filed as a result."""

import http.server
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import Lab, wait_for

pytestmark = pytest.mark.workflow

AXES = "{parallelism: [tp1, tp2]}"


def refused(lab: Lab, run: subprocess.CompletedProcess[str], code: str) -> str:
    """Return the one line of that code; nothing may be filed."""
    assert run.returncode == 1, run.stdout
    lines = [line for line in run.stdout.splitlines() if line.startswith(f"{code}: ")]
    assert len(lines) == 1, run.stdout
    assert "; fix: " in lines[0]
    assert "Traceback" not in run.stdout
    assert not (lab.root / "history").exists()
    return lines[0]


def test_missing_engine(lab: Lab) -> None:
    path = lab.campaign(AXES)
    path.write_text(path.read_text().replace(".engines/sglang-cpu/bin", "nowhere/bin"))
    line = refused(lab, lab.snakemake(), "engine_missing")
    assert "engines.client.python = nowhere/bin/python" in line


def test_too_little_memory(lab: Lab) -> None:
    path = lab.campaign(AXES)
    path.write_text(
        path.read_text().replace("device: cpu", "device: cpu\n    min_free_memory_mb: 99999999")
    )
    assert "needs 99999999" in refused(lab, lab.snakemake(), "gpu_busy")


@pytest.fixture
def stranger() -> Iterator[int]:
    """A stranger's server; yields its port."""
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_busy_port_names_its_owner(lab: Lab, stranger: int) -> None:
    lab.campaign(AXES, extra=f"server: {{port: {stranger}}}\n")
    line = refused(lab, lab.snakemake(), "port_in_use")
    assert f"port {stranger} is taken by pid " in line


def test_results_that_cannot_be_written(lab: Lab) -> None:
    lab.campaign(AXES)
    (lab.folder / "results").mkdir()
    (lab.folder / "results/small").write_text("in the way")
    run = lab.snakemake()
    assert run.returncode == 1
    assert "results_unwritable: results/small" in run.stdout


def test_more_gpus_than_the_node_has(lab: Lab) -> None:
    path = lab.campaign(AXES)
    path.write_text(path.read_text().replace("device: cpu", "device: cuda"))
    run = lab.snakemake("-n")
    assert run.returncode == 1
    lines = [one for one in run.stdout.splitlines() if one.startswith("config_rejected: ")]
    assert len(lines) == 2
    assert lines[1].endswith("campaign.yaml: cell tp2: needs 2 GPUs, node.gpus = 0")


def test_unknown_option_on_the_command_line(lab: Lab) -> None:
    lab.campaign(AXES)
    assert "--config foo" in refused(lab, lab.snakemake("--config", "foo=1"), "config_rejected")


def test_two_invocations_on_one_campaign(lab: Lab) -> None:
    lab.campaign("{standin_ready_ms: [60000]}")
    first = lab.start()
    lab.await_event("starting")
    line = refused_running(lab.snakemake())
    assert f"pid {first.pid}" in line
    first.terminate()
    assert first.wait(60) != 0
    wait_for(lambda: lab.processes() == [], "no process of the campaign is left", 30)


def refused_running(run: subprocess.CompletedProcess[str]) -> str:
    assert run.returncode == 1
    (line,) = [text for text in run.stdout.splitlines() if text.startswith("campaign_running: ")]
    return line


def test_a_busy_node_stops_the_campaign_after_one_launch(lab: Lab, tmp_path: Path) -> None:
    """With --keep-going Snakemake would try them all; each further one is refused at once."""
    path = lab.campaign("{chunked_prefill_size: [1, 2, 3, 4]}")
    path.write_text(path.read_text().replace("device: cpu", "device: cuda") + "node: {gpus: 1}\n")
    smi = tmp_path / "bin/nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(
        f"""#!/bin/sh
case "$*" in
*compute-apps*) echo call >> {tmp_path}/calls; echo '99999999, GPU-1, 100 MiB, stranger' ;;
*memory.used*) echo '0, GPU-1, NVIDIA H200, 580.1, 700.00 W, 143771 MiB, 104 MiB' ;;
esac
"""
    )
    smi.chmod(0o755)
    lab.path_first = smi.parent
    run = lab.snakemake("--keep-going")
    assert run.returncode == 1
    busy = "gpu_busy: GPU 0 (GPU-1) is used by pid 99999999 of user ?, 100 MiB: stranger"
    assert run.stdout.count(busy) >= 1
    assert (tmp_path / "calls").read_text().count("call") == 1
    assert not (lab.root / "history").exists()
