"""What the sampler costs beside a server: CPU per sample, share of a core, memory.

    python tests/perf/sampler.py --hz 2 --seconds 20 --processes 6 --threads 12

The "server" is a tree of idle processes with as many threads each. CPU per sample is what the
sampler says of itself, the share of a core is the operating system's account of the finished
process, with its start.
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

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "workflow/scripts"))

from sgmatrix.node import proc  # noqa: E402 - the path first
from sgmatrix.node.telemetry.samples import read_samples  # noqa: E402

RANK = """
import sys, threading
for _ in range(int(sys.argv[1]) - 1):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print(flush=True)
sys.stdin.read()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hz", type=float, default=2.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--threads", type=int, default=12, help="of each process")
    asked = parser.parse_args()
    me = proc.identify(os.getpid())
    assert me is not None
    command = [sys.executable, "-S", "-c", RANK, str(asked.threads)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    ranks = [subprocess.Popen(command, **pipes) for _ in range(asked.processes)]
    for rank in ranks:
        rank.stdout.readline()
    with tempfile.TemporaryDirectory(prefix="sgmatrix-sampler-") as name:
        file, spec = Path(name, "telemetry.jsonl"), Path(name, "spec.json")
        owner = proc.identify(os.getppid()) or me
        who = {"warden": me.record(), "owner": owner.record()}
        spec.write_text(
            json.dumps({"file": str(file), "hz": asked.hz, "gpus": [], "cpu": True, **who})
        )
        start_s = time.monotonic()
        sampler = subprocess.Popen(
            [sys.executable, "-P", "-m", "sgmatrix.node.sampler", str(spec)],
            env={**os.environ, "PYTHONPATH": str(PROJECT / "workflow/scripts")},
        )
        time.sleep(asked.seconds)
        sampler.terminate()
        _, status, usage = os.wait4(sampler.pid, 0)
        sampler.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.monotonic() - start_s
        samples = read_samples(file)
        cpu_ms = sorted(s.cpu_ms for s in samples[1:-1])
        took_ms = sorted(s.took_ms for s in samples[1:-1])
        size = file.stat().st_size
    for rank in ranks:
        rank.communicate()
    cpu_s = usage.ru_utime + usage.ru_stime
    print(f"{len(samples)} samples, {asked.processes} x {asked.threads} threads beside it")
    for what, values in (("CPU", cpu_ms), ("wall", took_ms)):
        middle, worst = statistics.median(values), values[-1]
        print(f"{what} ms per sample: median {middle:.2f}, most {worst:.2f}")
    steady = sum(cpu_ms) / 1e3 / (len(cpu_ms) / asked.hz)
    print(f"share of a core: {steady:.4f}; with the start {cpu_s / wall_s:.4f} ({cpu_s:.2f} s)")
    print(f"peak memory {usage.ru_maxrss / 1024:.0f} MiB, {size / len(samples):.0f} bytes a sample")
    print(f"skipped {samples[-1].skipped}, lost {samples[-1].lost}, exit {sampler.returncode}")


if __name__ == "__main__":
    main()
