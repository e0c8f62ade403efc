"""How often comparisons claim something false, and which effects they find, in simulated launches.

    PYTHONPATH=tests:workflow/scripts .venv/bin/python -m perf.ab_power --runs 4000 --seed 1

Five load points whose noise is half shared within a launch (`tests/ab_worlds.py`), judged by the
code that users run. Effects are in units of the noise, the standard deviation of one launch's
value. A plan is a fixed number of launches per arm, or a minimum and a budget. The figures are in
docs/comparing.md.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

import numpy as np

from ab_worlds import LOADS, METRIC, NOISE, PRIMARY, World, comparisons
from sgmatrix.analysis.ab.bootstrap import interval
from sgmatrix.analysis.ab.compare import conclude
from sgmatrix.analysis.ab.inputs import Rules
from sgmatrix.analysis.ab.judge import Verdict
from sgmatrix.analysis.ab.results import Comparison
from sgmatrix.analysis.ab.student import half_width, spread

EFFECTS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
CLAIMS = {Verdict.BETTER, Verdict.WORSE}
WORLDS = {
    "normal": World(),
    "heavy": World(tails="heavy"),
    "drift": World(drift=0.5),
    "lost": World(lost=0.1),
}
BOUND = 2.0
"""Noises; `no difference larger than 2 x the noise`."""

Plan = tuple[int, int]


def concluded(
    plan: Plan, effects: dict[str, float], world: World, runs: int, seed: int
) -> list[Comparison]:
    rules = Rules(PRIMARY, METRIC, 100 * np.expm1(BOUND * NOISE), *plan)
    drawn = comparisons(runs, plan[1], effects, world, seed)
    return [conclude(series, rules) for series in drawn]


def share(found: list[Comparison], verdicts: set[Verdict], *, primary: bool) -> str:
    """Percent of comparisons with one of the verdicts: at the primary, or at any load point."""
    hits = sum(
        any(one.verdict in verdicts and one.primary >= primary for one in comparison.results)
        for comparison in found
    )
    return f"{100 * hits / len(found):.1f}"


def row(cells: list[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def head(cells: list[str]) -> None:
    print()
    row(cells)
    row(["---"] * len(cells))


def name(plan: Plan) -> str:
    return str(plan[0]) if plan[0] == plan[1] else f"{plan[0]} to {plan[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--launches", type=int, nargs="+", default=range(3, 11))
    given = parser.parse_args()
    runs, seed = given.runs, given.seed
    print(f"{datetime.now(UTC):%Y-%m-%d}, {runs} comparisons per figure, seed {seed}")
    plans = [(n, n) for n in given.launches] + [(3, n) for n in given.launches if n > 3]

    print("\nNo difference anywhere: comparisons with a better or worse at any load point, %;")
    print("all load points at exactly the bound: with a `no difference` at any, %")
    head(["launches", *WORLDS, "at the bound"])
    for plan in plans:
        false = [
            share(concluded(plan, {}, world, runs, seed), CLAIMS, primary=False)
            for world in WORLDS.values()
        ]
        equal = concluded(plan, dict.fromkeys(LOADS, BOUND), World(), runs, seed)
        row([name(plan), *false, share(equal, {Verdict.NO_DIFFERENCE}, primary=False)])

    print("\nEffect at the primary load point, in noises: found there, %; launches used, mean")
    print("0: `no difference larger than 2 x the noise` there")
    head(["launches", "0", *(f"{effect:g}" for effect in EFFECTS), "used at 0", "used at 4"])
    for plan in plans:
        none = concluded(plan, {}, World(), runs, seed + 1)
        cells = [share(none, {Verdict.NO_DIFFERENCE}, primary=True)]
        for effect in EFFECTS:
            found = concluded(plan, {PRIMARY: effect}, World(), runs, seed + 1)
            cells.append(share(found, {Verdict.BETTER}, primary=True))
        used = [f"{np.mean([one.used for one in many]):.1f}" for many in (none, found)]
        row([name(plan), *cells, *used])

    print("\n95 % intervals that miss the truth, %")
    head(["pairs", "t interval", "bootstrap"])
    rng = np.random.default_rng(seed)
    for n in (3, 5, 10, 20):
        missed = np.zeros(2)
        for values in rng.standard_normal((runs, n)).tolist():
            of = spread(values)
            low, high = interval(values, 0.05)
            missed += [abs(of.mean) > half_width(of.sd, n, 0.05), not low <= 0 <= high]
        row([str(n), *(f"{100 * one / runs:.1f}" for one in missed)])


if __name__ == "__main__":
    main()
