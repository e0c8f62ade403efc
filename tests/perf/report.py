"""What the report of a hundred cells costs: seconds, size.

    python tests/perf/report.py --runs 5

The history is that of the browser tests (`tests/browser/conftest.py`): 100 cells at 10 load points,
six of them failed. Each run is a process of its own, imports too; the files are in the page cache.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT / "tests" / place) for place in ("", "browser")]
sys.path.insert(0, str(PROJECT / "workflow/scripts"))

from conftest import hundred  # noqa: E402

RUN = """
import json, resource, sys, time
began = time.perf_counter()
from pathlib import Path
from sgmatrix.core.layout import Layout
from sgmatrix.present.report import write_report
layout, out = Layout(Path(sys.argv[1])), Path(sys.argv[2])
points = layout.datasets / "points.parquet"
write_report(layout, points, html=out / "index.html", csv=out / "points.csv")
took = time.perf_counter() - began
print(json.dumps([took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        told = hundred(Path(folder))
        told.collect()
        command = [sys.executable, "-c", RUN, str(told.layout.root), folder]
        runs = []
        for _ in range(args.runs):
            done = subprocess.run(
                command,
                cwd=PROJECT / "workflow/scripts",
                capture_output=True,
                text=True,
                check=True,
            )
            runs.append(json.loads(done.stdout))
        seconds = sorted(took for took, _ in runs)
        size = (Path(folder) / "index.html").stat().st_size
        print(
            f"100 cells, 1000 points: {statistics.median(seconds):.2f} s "
            f"({seconds[0]:.2f} to {seconds[-1]:.2f}, {args.runs} runs), "
            f"{max(peak for _, peak in runs):.0f} MiB, page {size / 1e6:.2f} MB"
        )


if __name__ == "__main__":
    main()
