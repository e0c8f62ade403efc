"""What a plan of 1,000 cells x 6 load points costs: read, expanded, printed; and its graph of jobs.

    python tests/perf/plan.py --runs 3

CPU seconds and peak memory are those of the finished process, by the operating system's account.
The cells are of the stand-in engine: what an engine takes to parse its own arguments is not here.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from string import Template

PROJECT = Path(__file__).resolve().parents[2]

CAMPAIGN = Template("""
campaign: plan
engine: standin
engines:
  standin: {python: $python, device: cpu, env: {PYTHONPATH: "{project}/tests/standin"}}
  client: {python: .engines/sglang-cpu/bin/python}
model: {recipe: tiny-qwen3-moe}
axes:
  chunked_prefill_size: $hundred
  max_running_requests: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
load: {concurrency: [1, 2, 4, 8, 16, 32], input_len: 16, output_len: 16, client: {engine: client}}
""")


def measure(folder: Path, *arguments: str) -> dict[str, float]:
    """Run snakemake once; return its wall and CPU seconds and its peak memory in MB."""
    command = [str(Path(sys.executable).with_name("snakemake")), *arguments]
    command += ["--directory", str(folder), "--configfile", str(folder / "campaign.yaml")]
    start_s = time.monotonic()
    with (folder / "out.txt").open("wb") as out:
        process = subprocess.Popen(command, cwd=PROJECT, stdout=out, stderr=out)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit((folder / "out.txt").read_text())
    return {
        "wall_s": time.monotonic() - start_s,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory(prefix="sgmatrix-plan-") as name:
        folder = Path(name)
        hundred = [1024 * (i + 1) for i in range(100)]
        text = CAMPAIGN.substitute(python=sys.executable, hundred=hundred)
        (folder / "campaign.yaml").write_text(text)
        for arguments in (["plan"], ["-n"]):
            found = [measure(folder, *arguments) for _ in range(runs)]
            medians = {
                key: round(statistics.median(run[key] for run in found), 2) for key in found[0]
            }
            load = os.getloadavg()[0]
            print(f"snakemake {arguments[0]}: {json.dumps(medians)}, {runs} runs, load {load:.1f}")


if __name__ == "__main__":
    main()
