"""Simulated A/B comparisons whose truth is known: launches with noise, and arms that differ or not.

Noise is the standard deviation of one launch's value, on the log scale, 1 % here. Half of its
variance is shared by all load points of a launch. Launches run A B, B A, A B, … with steady time
between them, so a drift is a number per launch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sgmatrix.analysis.ab.inputs import Series

NOISE = 0.01
SHARED = 0.5
LOADS = ("c0001", "c0008", "c0032", "c0064", "c0128")
PRIMARY = "c0032"
METRIC = "output_tok_s"


@dataclass(frozen=True)
class World:
    """How launches behave."""

    tails: str = "normal"
    """`normal`, or `heavy`: Student's t with 3 degrees of freedom, brought to the same variance."""
    drift: float = 0.0
    """Change from one launch to the next, in units of the noise."""
    lost: float = 0.0
    """Probability that a launch fails and has no values."""


def comparisons(
    runs: int, rounds: int, effects: dict[str, float], world: World, seed: int
) -> Iterator[list[Series]]:
    """Yield `runs` comparisons of `rounds` rounds; effects by load point in units of the noise."""
    rng = np.random.default_rng(seed)
    shape = (runs, rounds, 2, len(LOADS))
    own = _standard(rng, shape, world)
    launch = _standard(rng, (*shape[:3], 1), world)
    logs = NOISE * (SHARED**0.5 * launch + (1 - SHARED) ** 0.5 * own)
    logs[:, :, 1, :] += NOISE * np.array([effects.get(load, 0.0) for load in LOADS])
    logs += NOISE * world.drift * places(rounds)[None, :, :, None]
    values = 1000 * np.exp(logs)
    values[rng.random(shape[:3]) < world.lost] = np.nan
    for one in values:
        arms = [
            [[None if math.isnan(v) else v for v in arm] for arm in load] for load in one.T.tolist()
        ]
        yield [
            Series(load, METRIC, tuple(baseline), tuple(variant))
            for load, (baseline, variant) in zip(LOADS, arms, strict=True)
        ]


def places(rounds: int) -> NDArray[np.float64]:
    """Place in time of the launch of each round and arm, from 0; shape (rounds, 2)."""
    first = 2.0 * np.arange(rounds)[:, None]
    even = (np.arange(rounds) % 2)[:, None]
    return first + np.where(even, [[1.0, 0.0]], [[0.0, 1.0]])


def _standard(
    rng: np.random.Generator, shape: tuple[int, ...], world: World
) -> NDArray[np.float64]:
    if world.tails == "heavy":
        return rng.standard_t(3, shape) / 3**0.5
    return rng.standard_normal(shape)
