"""What collecting a large history costs: seconds, peak memory, sizes.

    python tests/perf/collect.py --cells 1000 --requests 2000 --runs 5

The history is made first, one load point a cell and 31 times between tokens a request, in a folder
of its own that is removed again; its files are the product's but for their fsync. Each run collects
in a process of its own. Seconds are the wall's, of the call alone; peak memory is the resident set
of the whole process by the operating system's account, Python and Arrow included. The files are in
the page cache.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT / "tests"), str(PROJECT / "workflow/scripts")]

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402

from builders import STARTED_AT, History, campaign, launch_spec  # noqa: E402
from sgmatrix.core.files import write_json  # noqa: E402
from sgmatrix.core.parquet import write_table  # noqa: E402
from sgmatrix.core.schemas import REQUESTS, REQUESTS_VERSION, with_metadata  # noqa: E402

TOKENS = 31
RUN = """
import json, resource, sys, time
from pathlib import Path
from sgmatrix.core.layout import Layout
from sgmatrix.dataset.collect import Tables, collect
layout = Layout(Path(sys.argv[1]))
began, cpu = time.monotonic(), time.process_time()
left_out = collect(layout, Tables.of(layout))
print(json.dumps({
    "wall_s": time.monotonic() - began,
    "cpu_s": time.process_time() - cpu,
    "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "left_out": len(left_out),
}))
"""


def make_history(folder: Path, cells: int, requests: int) -> Path:
    """Write a history of so many cells; return the folder of its campaign."""
    load = {"concurrency": [64], "input_len": 256, "output_len": TOKENS + 1}
    made = History(folder, campaign(load=load))
    first = made.plan["cells"]["tp1"]
    launch = made.plan["launches"][0]
    made.attempt("tp1")
    pattern = made.layout.attempt("tp1", "1", 1)
    load_id = launch["points"][0]["load_id"]
    record = json.loads((pattern / "points" / f"{load_id}.json").read_text())
    made.plan["cells"], made.plan["launches"] = {}, []
    random = np.random.default_rng(7)
    for number in range(cells):
        name = f"cell-{number:04d}"
        cell = {**copy.deepcopy(first), "id": name, "axes_text": {"parallelism": name}}
        made.plan["cells"][name] = cell
        made.plan["launches"].append({**launch, "cell": name, "position": number})
        attempt = made.layout.attempt(name, "1", 1)
        made.plan["launches"], kept = made.plan["launches"][-1:], made.plan["launches"]
        write_json(attempt / "spec.json", launch_spec(made.plan, name, "1", 1))
        made.plan["launches"] = kept
        identity = {"cell": name, "launch": "1", "attempt": 1}
        server = {"status": "ok", "info": {"version": "0.5.23"}}
        write_json(attempt / "server.json", {**identity, **server})
        final = {"status": "ok", "reason": None, "detail": None, "finished_at": STARTED_AT}
        write_json(attempt / "teardown.json", {**identity, **final})
        write_json(attempt / "points" / f"{load_id}.json", {**record, "cell": name})
        table = _requests(random, requests, {**identity, "load_id": load_id}, made.plan["campaign"])
        write_table(table, attempt / "points" / f"{load_id}.requests.parquet")
    write_json(made.layout.plan, made.plan)
    for file in sorted(pattern.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    pattern.rmdir()
    return made.layout.root


def _requests(
    random: np.random.Generator, rows: int, identity: dict[str, object], campaign_name: str
) -> pa.Table:
    """Return requests with times that no two share, so that they compress as real ones do."""
    between = random.gamma(20.0, 0.5, (rows, TOKENS)).astype(np.float32)
    ttft = random.gamma(10.0, 5.0, rows)
    values = {
        **identity,
        "campaign": campaign_name,
        "ok": True,
        "error": None,
        "input_tokens": 256,
        "requested_output_tokens": TOKENS + 1,
        "output_tokens": TOKENS + 1,
    }
    measured = {
        "request": np.arange(rows, dtype=np.int32),
        "ttft_ms": ttft,
        "tpot_ms": between.mean(1, dtype=np.float64),
        "e2e_ms": ttft + between.sum(1, dtype=np.float64),
    }
    columns = []
    for field in REQUESTS:
        if field.name == "itl_ms":
            ends = pa.array(np.arange(0, rows * TOKENS + 1, TOKENS, dtype=np.int32))
            columns.append(pa.ListArray.from_arrays(ends, pa.array(between.ravel()), field.type))
        elif field.name in measured:
            columns.append(pa.array(measured[field.name], field.type))
        else:
            columns.append(pa.array([values[field.name]] * rows, field.type))
    schema = with_metadata(REQUESTS, "requests", REQUESTS_VERSION, {"point_key": "perf"})
    return pa.Table.from_arrays(columns, schema=schema)


def collect_once(root: Path) -> dict[str, float]:
    """Collect in a process of its own; return what it cost."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "workflow/scripts")}
    command = [sys.executable, "-c", RUN, str(root)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(ran.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sgmatrix-collect-") as name:
        root = make_history(Path(name), options.cells, options.requests)
        files = [file.stat().st_size for file in (root / "history").rglob("*.parquet")]
        runs = [collect_once(root) for _ in range(options.runs)]
        medians = {key: round(statistics.median(run[key] for run in runs), 2) for key in runs[0]}
        sizes = {file.stem: file.stat().st_size for file in sorted(root.glob("datasets/*.parquet"))}
        print(f"history: {len(files)} request files, {sum(files) / 1e6:.0f} MB")
        print(f"collect: {json.dumps(medians)}, median of {options.runs} runs")
        walls = sorted(run["wall_s"] for run in runs)
        print(f"fastest: {walls[0]:.2f} s, slowest: {walls[-1]:.2f} s")
        print("tables:  " + ", ".join(f"{one} {size / 1e6:.1f} MB" for one, size in sizes.items()))
        print(f"load average {os.getloadavg()[0]:.1f}, {len(os.sched_getaffinity(0))} CPUs")


if __name__ == "__main__":
    main()
