"""What triage of a server's log of 8 MiB costs, for logs of several kinds.

    python tests/perf/triage.py --runs 5

CPU seconds of this process, the least and the median of the runs. The logs are made here.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "workflow" / "scripts"))

from sgmatrix.node.logwatch import LogWatch  # noqa: E402
from sgmatrix.node.triage import triage  # noqa: E402

SIZE = 8 * 1024 * 1024
STAMP = "[2026-12-03 09:15:20 TP0] "
KINDS = {
    "serving": f"{STAMP}Decode batch. #running-req: 64, #token: 37100, token usage: 0.81, "
    "gen throughput (token/s): 2105.11, #queue-req: 12\n",
    "access": '[2026-12-03 09:15:20] INFO:     127.0.0.1:51044 - "POST /generate HTTP/1.1" 500 '
    "Internal Server Error\n",
    "autotuner": f"{STAMP}[Autotuner]: Skipping tactic <MoERunner> 7, due to failure while "
    "profiling: [TensorRT-LLM][ERROR] Assertion failed: Failed to initialize cutlass TMA WS\n",
    "tracebacks": f"{STAMP}Something was caught\nTraceback (most recent call last):\n"
    '  File "sglang/srt/managers/scheduler.py", line 3000, in get_next_batch\n    x()\n'
    "ValueError: of no importance\n",
    "NCCL": "gpu-node:4121:4121 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n",
    "one line": "x" * SIZE,
    "colours": "\x1b[32mINFO\x1b[0m Loading safetensors checkpoint shards:  50%\r",
}


def cpu_s(work: Callable[[], object]) -> float:
    """Return the CPU seconds that one call takes."""
    start_s = time.process_time()
    work()
    return time.process_time() - start_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    print(f"{'8 MiB of':14}{'triage: min':>14}{'median, s':>12}{'watch: min':>14}{'median, s':>12}")
    with tempfile.TemporaryDirectory(prefix="sgmatrix-triage-") as name:
        log = Path(name) / "server.log"
        for kind, line in KINDS.items():
            log.write_text((line * (SIZE // len(line) + 1))[:SIZE])
            read = [cpu_s(lambda: triage(log)) for _ in range(runs)]
            watched = [cpu_s(lambda: LogWatch(log).death()) for _ in range(runs)]
            print(
                f"{kind:14}{min(read):14.3f}{statistics.median(read):12.3f}"
                f"{min(watched):14.3f}{statistics.median(watched):12.3f}"
            )


if __name__ == "__main__":
    main()
