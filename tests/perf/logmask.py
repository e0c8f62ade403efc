"""How long masking a server's log holds the devices: seconds for 100,000 lines of each kind.

python tests/perf/logmask.py --runs 3
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "workflow/scripts"))

from sgmatrix.node.logmask import mask_log

LINES = 100_000
KINDS = {
    "requests": b'[2026-12-01 10:00:01] INFO: 127.0.0.1:40000 - "POST /generate HTTP/1.1" 200\n',
    "batches": b"[2026-12-01 10:00:01] Decode batch, #running-req: 2, #token: 64, token usage: "
    b"0.01, cuda graph: True, gen throughput (token/s): 3200.00, #queue-req: 0\n",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "server.log")
        for kind, line in KINDS.items():
            log.write_bytes(line * LINES)
            took = []
            for _ in range(runs):
                began = time.perf_counter()
                mask_log(log)
                took.append(time.perf_counter() - began)
            spread = f"({min(took):.2f}-{max(took):.2f})"
            middle = statistics.median(took)
            print(f"{kind}: {middle:.2f} s {spread} for {LINES:,} lines, {runs} runs")


if __name__ == "__main__":
    main()
