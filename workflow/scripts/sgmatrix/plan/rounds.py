"""Rounds of launches: in which turn they run, and which of them run only while undecided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sgmatrix.core.hashing import digest
from sgmatrix.core.layout import NOISE, launch_order
from sgmatrix.plan.compare import Comparison, noise_launch, rule_digest


@dataclass(frozen=True)
class Condition:
    """A launch that runs only while a comparison is undecided."""

    comparisons: tuple[str, ...]
    """Names; it runs while one of them is undecided."""
    after: tuple[tuple[str, str], ...]
    """(cell, launch) of the rounds before, whose values decide it."""
    rules: tuple[str, ...]
    """Hash of each comparison's rule."""

    def rule(self, attempts: Mapping[tuple[str, str], int]) -> str:
        """Return a hash over what decides it: the rules, and the attempts whose values count."""
        return digest([self.rules, [[*one, attempts.get(one, 0)] for one in self.after]])


def turns(counts: Mapping[str, int], noisy: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield (cell, launch) in the order of measuring.

    A round holds one launch of each cell, and the second ones of the baselines at its end; every
    second round runs backwards (ABBA), so that a drift of the machine over time falls on all
    cells alike.

    Args:
        counts: cell id to its number of launches.
        noisy: cell id to the number of rounds in which it has a second one.
    """
    for number in range(1, max(counts.values(), default=0) + 1):
        there = [(cell, str(number)) for cell, count in counts.items() if number <= count]
        there += [(cell, noise_launch(number)) for cell, most in noisy.items() if number <= most]
        yield from there if number % 2 else reversed(there)


def launches_needed(
    always: Mapping[str, int], compared: Sequence[Comparison]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return how many launches each cell has, and in how many rounds it has a second one."""
    counts, noisy = dict(always), dict[str, int]()
    for one in compared:
        for cell in (one.baseline, one.variant):
            counts[cell] = max(counts[cell], one.most)
        if one.noise_pair:
            noisy[one.baseline] = max(noisy.get(one.baseline, 0), one.most)
    return counts, noisy


def conditions(
    compared: Sequence[Comparison], always: Mapping[str, int]
) -> dict[tuple[str, str], Condition]:
    """Return the launches that run only while undecided, each with what it depends on."""
    wants: dict[tuple[str, str], list[tuple[Comparison, int]]] = {}
    for one in compared:
        for number, planned in enumerate(one.rounds, 1):
            for arm, cell in arms_of(one):
                wants.setdefault((cell, planned[arm]), []).append((one, number))
    found = {}
    for (cell, launch), theirs in wants.items():
        asked_for = not launch.endswith(NOISE) and int(launch) <= always[cell]
        if asked_for or any(number <= one.least for one, number in theirs):
            continue
        after = {
            (earlier, planned[arm])
            for one, number in theirs
            for planned in one.rounds[: number - 1]
            for arm, earlier in arms_of(one)
        }
        found[cell, launch] = Condition(
            comparisons=tuple(one.name for one, _ in theirs),
            after=tuple(sorted(after, key=lambda pair: (pair[0], launch_order(pair[1])))),
            rules=tuple(rule_digest(one) for one, _ in theirs),
        )
    return found


def arms_of(one: Comparison) -> list[tuple[str, str]]:
    """Return (arm, cell id) of what a comparison launches."""
    arms = [("baseline", one.baseline), ("variant", one.variant)]
    return [*arms, ("noise", one.baseline)] if one.noise_pair else arms
