"""False claims of `snakemake compare`, by simulation: `python -m perf.campaigns_power`.

    PYTHONPATH=tests:workflow/scripts .venv/bin/python -m perf.campaigns_power --runs 4000 --seed 1

Five load points of one cell and metric, half of the noise shared by all of a launch, as in
`perf.ab_power`. Prints, in %, the comparisons with a false better or worse at any load point,
those with a false `no difference`, and those that find 3 x the noise at the first load point.
"""

from __future__ import annotations

import argparse

import numpy as np

from sgmatrix.analysis.ab.judge import Verdict
from sgmatrix.analysis.campaigns.judge import Arms, judge

LOADS, NOISE = 5, 0.003
CLAIMS = {Verdict.BETTER, Verdict.WORSE}


def arm(rng: np.random.Generator, launches: int, noise: float, heavy: bool) -> np.ndarray:
    """Return log values, launches x loads."""

    def draw(*shape: int) -> np.ndarray:
        return rng.standard_t(3, shape) / 3**0.5 if heavy else rng.standard_normal(shape)

    return noise * 0.5**0.5 * (draw(launches, 1) + draw(launches, LOADS))


def share(
    runs: int, seed: int, sizes: tuple[int, int], effects: list[float], noise: float, heavy: bool
) -> tuple[float, float, float]:
    """Return shares of: any better or worse, any no difference, better or worse at the first."""
    rng = np.random.default_rng(seed)
    counts = np.zeros(3)
    for _ in range(runs):
        base = arm(rng, sizes[0], NOISE, heavy)
        other = arm(rng, sizes[1], noise, heavy) + np.array(effects)
        family = [Arms(tuple(np.exp(base[:, i])), tuple(np.exp(other[:, i]))) for i in range(LOADS)]
        found = [one.verdict for one in judge(family, "output_tok_s", 100 * 2 * NOISE)]
        counts += (
            any(one in CLAIMS for one in found),
            Verdict.NO_DIFFERENCE in found,
            found[0] in CLAIMS,
        )
    return tuple(100 * counts / runs)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    bound = float(np.log1p(2 * NOISE))
    print("launches  normal  heavy  other 3 x as noisy  at the bound  finds 3 x the noise")
    for sizes in ((3, 3), (3, 5), (5, 5), (10, 10)):
        nothing = [0.0] * LOADS
        told = [
            share(asked.runs, asked.seed, sizes, nothing, NOISE, False)[0],
            share(asked.runs, asked.seed, sizes, nothing, NOISE, True)[0],
            share(asked.runs, asked.seed, sizes, nothing, 3 * NOISE, False)[0],
            share(asked.runs, asked.seed, sizes, [bound] * LOADS, NOISE, False)[1],
            share(asked.runs, asked.seed, sizes, [3 * NOISE, 0, 0, 0, 0], NOISE, False)[2],
        ]
        print(f"{sizes[0]} and {sizes[1]}  " + "  ".join(f"{one:.1f}" for one in told))


if __name__ == "__main__":
    main()
