"""What the workflow adds to the load: seconds per launch, per load point, and fixed.

6 cells x 3 load points of 0.8 s true load on the stand-in server, which is ready 50 ms after
its start; times of starts, requests and stops are the server's own. Without warm-up waves, so
that it is the same work as a bare loop does; `--warmup` states their cost apart.

    python tests/perf/overhead.py --runs 3
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
CELLS, LOADS, TRUE_LOAD_S, READY_S = 6, (1, 2, 8), 0.8, 0.05

CAMPAIGN = Template("""
campaign: overhead
engine: standin
engines:
  standin:
    python: $python
    device: cpu
    env: {PYTHONPATH: "{project}/tests/standin"}
    flags: {standin_ready_ms: 50, standin_ttft_ms: 10, standin_tpot_ms: 10, standin_events: $events}
  client: {python: .engines/sglang-cpu/bin/python}
model: {recipe: tiny-qwen3-moe}
axes:
  chunked_prefill_size: $cells
load:
  concurrency: $loads
  input_len: 16
  output_len: 20
  requests: {min: 1, per_concurrency: 4}
  client: {engine: client}
warmup: {max_waves: $waves}
""")


def one_run(folder: Path, waves: int) -> dict[str, float]:
    """Run the campaign once in an empty folder; return its times in seconds."""
    events = folder / "events.jsonl"
    config = folder / "campaign.yaml"
    config.write_text(
        CAMPAIGN.substitute(
            python=sys.executable,
            events=events,
            cells=[1024 * (i + 1) for i in range(CELLS)],
            loads=list(LOADS),
            waves=waves,
        )
    )
    command = ["snakemake", "--snakefile", PROJECT / "Snakefile", "--directory", folder]
    start_s = time.time()
    with (folder / "snakemake.out").open("wb") as out:
        done = subprocess.run(
            [*command, "--configfile", config],
            check=False,
            cwd=PROJECT,
            stdout=out,
            stderr=out,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        )
    end_s = time.time()
    if done.returncode:
        raise SystemExit((folder / "snakemake.out").read_text())
    return account(events, start_s, end_s)


def account(path: Path, start_s: float, end_s: float) -> dict[str, float]:
    """Share the wall time out; the shares and the ideal time add up to it.

    Load points: from a server's first answer (the probe of readiness) to its last, less the true
    load and the warm-up. Launches: the rest of the time from the first start to the last stop,
    less the 50 ms that a server takes to be ready. Fixed: before the first start, after the
    last stop.
    """
    events = [json.loads(line) for line in path.read_text().splitlines()]
    launches = split(events, lambda event: event["event"] == "start")
    if len(launches) != CELLS:
        raise SystemExit(f"{len(launches)} servers were started, {CELLS} were planned")
    points_s = warmup_s = 0.0
    for launch in launches:
        ends = [event["t"] for event in launch if event["event"] == "finished"]
        warm = ends[len(ends) - 4 * sum(LOADS) - 1]  # the probe itself where there is no wave
        warmup_s += warm - ends[0]
        points_s += ends[-1] - warm - len(LOADS) * TRUE_LOAD_S
    first_s, last_s = launches[0][0]["t"], launches[-1][-1]["t"]
    load_s = CELLS * len(LOADS) * TRUE_LOAD_S
    return {
        "wall_s": end_s - start_s,
        "per_launch_s": (last_s - first_s - load_s - points_s - warmup_s) / CELLS - READY_S,
        "per_point_s": points_s / CELLS / len(LOADS),
        "warmup_per_launch_s": warmup_s / CELLS,
        "fixed_s": first_s - start_s + end_s - last_s,
    }


def split(events: list[Any], starts: Callable[[Any], bool]) -> list[list[Any]]:
    """Split a list before each item that starts a part."""
    parts: list[list[Any]] = []
    for event in events:
        if starts(event):
            parts.append([])
        parts[-1].append(event)
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--warmup", type=int, default=0, metavar="WAVES")
    options = parser.parse_args()
    runs = []
    for number in range(options.runs):
        with tempfile.TemporaryDirectory(prefix="sgmatrix-overhead-") as folder:
            runs.append(one_run(Path(folder), options.warmup))
        print(
            f"run {number + 1}: {json.dumps({k: round(v, 2) for k, v in runs[-1].items()})}",
            flush=True,
        )
    ideal_s = CELLS * READY_S + CELLS * len(LOADS) * TRUE_LOAD_S
    print(
        f"\n{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, "
        f"load average {os.getloadavg()[0]:.1f}, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}; "
        f"{options.runs} runs, median (range); {ideal_s:.1f} s of load and start are ideal\n"
    )
    for name in runs[0]:
        values = sorted(run[name] for run in runs)
        print(f"| {name} | {statistics.median(values):.2f} ({values[0]:.2f}-{values[-1]:.2f}) |")


if __name__ == "__main__":
    main()
