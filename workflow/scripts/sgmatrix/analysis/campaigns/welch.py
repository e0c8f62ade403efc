"""Welch's t: the difference of two means whose spreads are not one, without pairs.

Notation  arms a and b of n_a and n_b >= 2 values; e_a = s_a^2 / n_a, e_b likewise;
          standard error sqrt(e_a + e_b), degrees of freedom
          (e_a + e_b)^2 / (e_a^2 / (n_a - 1) + e_b^2 / (n_b - 1)).
Source    Welch 1947, doi:10.1093/biomet/34.1-2.28; Satterthwaite 1946, doi:10.2307/3002019.
Not here  levels and verdicts (`judge`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sgmatrix.analysis.ab.student import quantile, spread, tail


@dataclass(frozen=True)
class Difference:
    """Mean of the second arm minus mean of the first, on the scale of the values."""

    mean: float
    error: float
    df: float
    """Degrees of freedom; those of both arms together where neither varies."""

    def half_width(self, level: float) -> float:
        """Return half of the (1 - level) interval."""
        return quantile(level / 2, self.df) * self.error

    def p(self) -> float:
        """Return the two-sided p of "the means are the same"."""
        if self.error == 0:
            return 1.0 if self.mean == 0 else 0.0
        return min(1.0, 2 * tail(abs(self.mean) / self.error, self.df))

    def p_equivalence(self, low: float, high: float) -> float:
        """Return the p of "the difference is not within (low, high)", the larger of two."""
        if self.error == 0:
            return 0.0 if low < self.mean < high else 1.0
        return tail(min(self.mean - low, high - self.mean) / self.error, self.df)


def difference(a: Sequence[float], b: Sequence[float]) -> Difference:
    """Return the difference of two arms of at least two values each."""
    one, two = spread(a), spread(b)
    error_a, error_b = one.error**2, two.error**2
    both = error_a + error_b
    below = error_a**2 / (one.n - 1) + error_b**2 / (two.n - 1)
    df = both**2 / below if below else float(one.n + two.n - 2)
    return Difference(two.mean - one.mean, math.sqrt(both), df)


def noise_floor(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Return what two launches of one arm typically differ by: sqrt(2) x their pooled spread.

    None where neither arm has two values.
    """
    arms = [spread(one) for one in (a, b) if len(one) > 1]
    if not arms:
        return None
    df = sum(one.n - 1 for one in arms)
    return math.sqrt(2 * math.fsum(one.sd**2 * (one.n - 1) for one in arms) / df)
