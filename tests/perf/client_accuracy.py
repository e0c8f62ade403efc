"""What load clients report, beside what is true: a server that gives every stream a token a tick.

Our default client and SGLang's Python client, called as the workflow calls them, pinned to a core
of their own beside the server's. `--shared-core` shares the client's core with a busy neighbour.

    make bench-client                       # or, with options:
    PYTHONPATH=tests:workflow/scripts .venv/bin/python -m perf.client_accuracy --rounds 5
    PYTHONPATH=tests:workflow/scripts .venv/bin/python -m perf.client_accuracy --shared-core

The method and the figures of a quiet machine are in docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import platform
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perf.lockstep import tables
from perf.lockstep.account import check_schedstat
from perf.lockstep.series import Series, measure
from perf.lockstep.server import build
from perf.lockstep.trial import Bench, Trial, run_trial
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import write_json
from sgmatrix.plan.campaign import read_campaign
from sgmatrix.plan.engines import installation
from sgmatrix.plan.recipes import RECIPES
from sgmatrix.plan.tiny_model import VOCAB_SIZE

PROJECT = Path(__file__).resolve().parents[2]
STREAMS = (64, 256, 1024)
SHARED_STREAMS = (256, 1024)
QUIET_LOAD = 0.5
"""Load average before the first trial, above which the report says that it was not quiet."""
NEIGHBOURS = (0.0, 0.1, 0.25, 0.5, 1.0)


def clients() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return our default client and the Python client, as a plan of the default campaign does.

    Raises:
        SgmatrixError: `engine_missing` without the CPU engine, `client_setup` when its Rust
            client is missing: the two were then the same.
    """
    campaign = read_campaign(PROJECT / "config" / "config.yaml")
    engine = installation(campaign.engine, campaign.engines[campaign.engine], PROJECT)
    if engine.client_extension is None:
        raise SgmatrixError("client_setup", f"{engine.package} has no Rust load client")
    common = {
        "python": engine.python,
        "env": dict(engine.env),
        "extension": engine.client_extension,
        "vocab_size": VOCAB_SIZE,
    }
    rust, python = (
        {"id": f"sglang-{kind} {engine.version}", "kind": kind, **common}
        for kind in ("rust", "python")
    )
    return rust, python


def two_cores() -> tuple[int, int]:
    """Return the first and the last core that this process may use: the server's, the client's."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SgmatrixError(
            "client_setup", f"cores {cores}: server and client need one each", fix="allow two cores"
        )
    return cores[0], cores[-1]


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def heading(load_before: float, options: argparse.Namespace) -> str:
    """Return where and when, for the line above a table."""
    quiet = "" if load_before <= QUIET_LOAD else "; NOT a quiet machine"
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores (load average {load_before:.1f} "
        f"before the first trial{quiet}), {platform.system()} {platform.release()}, "
        f"rounds: {options.rounds}, {options.tokens} tokens at {options.tick_ms:g} ms ticks; "
        "median (range)"
    )


def side_by_side(
    bench: Bench, options: argparse.Namespace
) -> tuple[str, bool, Mapping[Any, Series]]:
    """Measure both clients; return the report, whether the goals are reached, and the trials."""
    both = {client["id"]: client for client in clients()}
    ours, other = both
    streams = dict.fromkeys((tables.BASE_STREAMS, *options.streams))
    cases = [(name, n) for n in streams for name in both]

    def run(case: tuple[str, int]) -> Trial:
        return run_trial(bench, both[case[0]], case[1])

    found = measure(cases, options.rounds, run, foreign_max=options.foreign_max, tell=tell)
    said = tables.verdicts(found, ours, other, max(options.streams))
    goals = [f"- {'pass' if reached else 'FAIL'}: {text}" for reached, text in said]
    report = [
        tables.accuracy_table(found),
        f"\n{ours} at {max(options.streams):,} streams:",
        *goals,
    ]
    return "\n".join(report), all(reached for reached, _ in said), found


def shared_core(
    bench: Bench, options: argparse.Namespace
) -> tuple[str, bool, Mapping[Any, Series]]:
    """Measure our client beside a neighbour; there is no goal, so that is always reached."""
    check_schedstat()
    ours, _ = clients()
    cases = [(n, share) for n in options.streams for share in NEIGHBOURS]

    def run(case: tuple[int, float]) -> Trial:
        return run_trial(bench, ours, case[0], burn=case[1] or None)

    found = measure(cases, options.rounds, run, foreign_max=options.foreign_max, tell=tell)
    return tables.sharing_table(found), True, found


def as_json(found: Mapping[Any, Series]) -> list[dict[str, Any]]:
    """Return every trial and refusal, for a file."""
    return [
        {
            "case": list(case),
            "refused": series.refused,
            "trials": [dataclasses.asdict(trial) for trial in series.trials],
        }
        for case, series in found.items()
    ]


def parsed(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streams", type=int, nargs="+", help="how many at once")
    parser.add_argument("--tokens", type=int, default=32, help="output tokens of a request")
    parser.add_argument("--tick-ms", type=float, default=100.0)
    parser.add_argument("--first-ms", type=float, default=100.0, help="least time to a first token")
    parser.add_argument(
        "--foreign-max", type=float, default=0.1, help="cores that others may use in a trial"
    )
    parser.add_argument("--shared-core", action="store_true", help="beside a busy neighbour")
    parser.add_argument("--json", type=Path, help="file for every trial")
    options = parser.parse_args(words)
    options.streams = options.streams or list(SHARED_STREAMS if options.shared_core else STREAMS)
    return options


def main() -> int:
    options = parsed()
    load_before = os.getloadavg()[0]
    server_core, client_core = two_cores()
    # this process, and what it samples, stay off the client's core
    os.sched_setaffinity(0, {server_core})
    with tempfile.TemporaryDirectory(prefix="sgmatrix-accuracy-") as name:
        folder = Path(name)
        RECIPES["tiny-qwen3-moe"].write(folder / "model")
        bench = Bench(
            program=build(folder),
            model_path=str(folder / "model"),
            server_core=server_core,
            client_core=client_core,
            tick_ms=options.tick_ms,
            first_ms=options.first_ms,
            tokens=options.tokens,
        )
        work = shared_core if options.shared_core else side_by_side
        report, reached, found = work(bench, options)
    print(f"{heading(load_before, options)}\n\n{report}")
    if options.json:
        write_json(options.json, as_json(found))
    return 0 if reached else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SgmatrixError as refusal:
        sys.exit(str(refusal))
