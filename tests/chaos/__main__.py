"""The chaos suite: `make chaos N=200`, or `python -m chaos --runs 200` with tests/ on PYTHONPATH.

--runs N         how many seeds, from --seed on
--seed S         the first seed; the same seed is the same scenario
--profile NAME   executor profile below profiles/; default: gpu-node for every fourth seed
--engine NAME    standin, or sglang-cpu for a few runs on the real engine
--jobs J         runs at once
--report FILE    also write the summary as Markdown
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from chaos.run import Outcome, run_scenario
from chaos.scenario import draw, draw_real


def main() -> int:
    """Run, print a line per run, and return 1 when anything was violated."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile")
    parser.add_argument("--engine", choices=("standin", "sglang-cpu"), default="standin")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    start = time.monotonic()
    outcomes: list[Outcome] = []
    seeds = range(options.seed, options.seed + options.runs)
    make = draw if options.engine == "standin" else draw_real
    scenarios = [make(s, options.profile or ("default" if s % 4 else "gpu-node")) for s in seeds]
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(run_scenario, scenarios):
            outcomes.append(outcome)
            state = "VIOLATED" if outcome.violations else "ok" if outcome.made else "ok, no fault"
            line = f"{len(outcomes):>4}  {outcome.took_s:5.1f} s  {state:<12}  {outcome.scenario}"
            print(line, flush=True)
            for text in (*outcome.violations, *(outcome.log if outcome.violations else ())):
                print(f"        {text}", flush=True)
    bad = [one for one in outcomes if one.violations]
    took_min = (time.monotonic() - start) / 60
    print(f"{len(outcomes)} runs, {len(bad)} with violations, {took_min:.0f} min")
    if options.report:
        options.report.write_text(_summary(outcomes, options, took_min))
    return 1 if bad else 0


def _summary(outcomes: list[Outcome], options: argparse.Namespace, took_min: float) -> str:
    made = [one for one in outcomes if one.made]
    counts = Counter(
        f"{one.scenario.signal} to {one.scenario.target}"
        if one.scenario.kind == "signal"
        else one.scenario.server_fault
        if one.scenario.kind == "server"
        else {"port": "port theft", "disk": "full disk"}[one.scenario.kind]
        for one in made
    )
    facts = {
        "profiles": ", ".join(
            f"{name} {count}"
            for name, count in sorted(Counter(o.scenario.profile for o in outcomes).items())
        ),
        "seeds": f"{options.seed} to {options.seed + options.runs - 1}",
        "engine": options.engine,
        "runs": len(outcomes),
        "faults made": len(made),
        "runs with violations": sum(bool(one.violations) for one in outcomes),
        "minutes": round(took_min),
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}",
    }
    lines = [f"| {name} | {value} |" for name, value in facts.items()]
    faults = [f"| {name} | {count} |" for name, count in sorted(counts.items())]
    violated = [
        f"- {one.scenario}: {json.dumps(one.violations)}" for one in outcomes if one.violations
    ]
    return "\n".join(
        [
            "| | |",
            "|---|---|",
            *lines,
            "",
            "| fault | runs |",
            "|---|---|",
            *faults,
            "",
            *violated,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
