"""How long tracking takes: a finished history of many runs into a fresh target, then again.

    python -m perf.tracking --runs-count 1000 --backend sqlite
    python -m perf.tracking --runs-count 1000 --backend server     # PostgreSQL behind MLflow
    python -m perf.tracking --history 1000                         # read, compared, written

A run has some 40 metrics and 30 params, a note, its prompts and five files. Run it with
PYTHONPATH=tests:workflow/scripts; the server needs PostgreSQL 15 as Debian installs it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from builders import campaign
from finished import Finished
from mlflow_server import serving
from sgmatrix.present.tracking.connection import connect, locked
from sgmatrix.present.tracking.experiment import ARTIFACTS, study_experiment
from sgmatrix.present.tracking.metrics import Value
from sgmatrix.present.tracking.runs import Prompts, Run
from sgmatrix.present.tracking.synchronise import synchronise
from sgmatrix.present.tracking.target import Target, find_target
from sgmatrix.present.tracking.track import track_to

POSTGRES = Path("/usr/lib/postgresql/15/bin")
ROUNDS = 10
BEGAN_MS = 1_795_000_000_000


def made_up_run(number: int) -> Run:
    """Return a run of 40 metrics and 30 params."""
    begin = BEGAN_MS + 120_000 * number
    names = ("output_tok_s", "ttft_ms_p50", "ttft_ms_p99", "tpot_ms_p50", "tpot_ms_p99")
    curves = [
        Value(f"by_concurrency/{name}", float(number + step), begin + step, step)
        for name in names
        for step in (1, 2, 4, 8, 16, 32, 64)
    ]
    once = [Value(f"summary/figure_{i}", float(i), begin, 0) for i in range(5)]
    return Run(
        key=f"perf/cell-{number}/1",
        attempt=1,
        current=True,
        name=f"cell-{number}",
        ok=True,
        start_ms=begin,
        end_ms=begin + 60_000,
        params={f"lever_{i}": f"value-{number}-{i}" for i in range(30)},
        tags={"bench.kind": "cell", "bench.campaign": "perf", "mlflow.note.content": "x" * 800},
        metrics=(*curves, *once),
        files=dict.fromkeys(("argv.json", "cell.yaml", "server.log"), "line of text\n" * 100)
        | {"points.csv": "a,b\n" * 20},
        prompts=(Prompts("i256-o128-random", "0123456789abcdef", "{}"),),
    )


def seconds(target: Target, folder: Path, runs: list[Run]) -> float:
    """Return how long one synchronisation takes, from the lock to the last tag."""
    start = time.perf_counter()
    with locked(target, folder):
        client = connect(target)
        experiment = study_experiment(client, target, "perf", folder / ARTIFACTS)
        at_once = 4 if target.is_server else 1
        synchronise(client, experiment.experiment_id, "perf", runs, at_once=at_once)
    return time.perf_counter() - start


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """Yield the URI of a fresh PostgreSQL, which does not run as root."""
    folder = Path(tempfile.mkdtemp(prefix="sgmatrix-postgres-", dir="/tmp"))
    user = "postgres" if os.getuid() == 0 else None
    if user:
        shutil.chown(folder, user)
    data = folder / "data"

    def call(name: str, *words: str) -> None:
        command = [str(POSTGRES / name), "-D", str(data), *words]
        subprocess.run(command, check=True, cwd=folder, user=user, stdout=subprocess.DEVNULL)

    call("initdb", "-U", "mlflow", "-A", "trust")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    call("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield f"postgresql+psycopg2://mlflow@127.0.0.1:{port}/postgres"
    finally:
        call("pg_ctl", "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@contextlib.contextmanager
def target(backend: str, folder: Path) -> Iterator[Target]:
    """Yield a fresh target of that kind."""
    if backend == "sqlite":
        yield find_target(f"sqlite:///{folder / 'mlflow.db'}", {})
        return
    with postgres() as uri, serving(uri, artifacts=folder / "artifacts") as address:
        yield find_target(address, {})


def print_history(launches: int) -> None:
    """Print how long a whole history takes to be tracked into a fresh SQLite file, and again."""
    with tempfile.TemporaryDirectory() as name:
        values = [round(0.1 + 0.008 * n, 3) for n in range(-(-launches // ROUNDS))]
        history = Finished(Path(name), campaign(launches=ROUNDS, axes={"mem_fraction": values}))
        for cell in history.cells:
            for launch in range(1, ROUNDS + 1):
                history.measured(cell, str(launch), rates={1: 64, 2: 100})
        history.collect()
        where = find_target(f"sqlite:///{Path(name) / 'mlflow.db'}", {})
        took = []
        for _ in range(2):
            start = time.perf_counter()
            track_to(where, history.layout, history.layout.root / "tracking.json")
            took.append(time.perf_counter() - start)
    count = ROUNDS * len(values)
    print(
        f"history: {count} launches tracked in {took[0]:.1f} s "
        f"({1000 * took[0] / count:.0f} ms each), replayed unchanged in {took[1]:.1f} s"
    )


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--runs-count", type=int, default=1000)
    asked.add_argument("--backend", choices=("sqlite", "server"), default="sqlite")
    asked.add_argument("--history", type=int, default=0, metavar="LAUNCHES", help="a whole one")
    given = asked.parse_args()
    if given.history:
        print_history(given.history)
        return
    runs = [made_up_run(number) for number in range(given.runs_count)]
    with tempfile.TemporaryDirectory() as name, target(given.backend, Path(name)) as where:
        load = os.getloadavg()[0]
        first = seconds(where, Path(name), runs)
        again = seconds(where, Path(name), runs)
    print(
        f"{given.backend}: {len(runs)} runs, {len(runs[0].metrics)} metrics, "
        f"{len(runs[0].params)} params: first {first:.1f} s "
        f"({1000 * first / len(runs):.0f} ms a run), unchanged {again:.1f} s; "
        f"mlflow {version('mlflow')}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, load average {load:.1f} at the start"
    )


if __name__ == "__main__":
    main()
