"""Rounds of launches: in which turn they run, and which of them run only while undecided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sgmatrix.core.hashing import digest
from sgmatrix.plan.compare import Comparison, main_launch, noise_launch, rule_digest


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


def round_of(launch: str, doubled: bool) -> int:
    """Return the round of a launch, from 1: what its prompts are drawn for."""
    number = int(launch)
    return (number + 1) // 2 if doubled else number


def turns(counts: Mapping[str, int], doubled: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield (cell, launch) in the order of measuring.

    A round holds one launch of each cell, and the second ones of the doubled cells at its end;
    every second round runs backwards (ABBA), so that a drift of the machine over time falls on
    all cells alike.

    Args:
        counts: cell id to its number of launches.
        doubled: cells with two launches in a round.
    """
    rounds = max(
        (round_of(str(count), cell in doubled) for cell, count in counts.items()), default=0
    )
    for number in range(1, rounds + 1):
        one = [(cell, main_launch(number, doubled=cell in doubled)) for cell in counts]
        one += [(cell, noise_launch(number)) for cell in counts if cell in doubled]
        there = [(cell, launch) for cell, launch in one if int(launch) <= counts[cell]]
        yield from there if number % 2 else reversed(there)


def launches_needed(always: Mapping[str, int], compared: Sequence[Comparison]) -> dict[str, int]:
    """Return how many launches each cell has: its own number, or what its comparisons plan."""
    counts = dict(always)
    for one in compared:
        for arm, cell in _arms(one):
            most = max(int(planned[arm]) for planned in one.rounds)
            counts[cell] = max(counts[cell], most)
    return counts


def conditions(
    compared: Sequence[Comparison], always: Mapping[str, int]
) -> dict[tuple[str, str], Condition]:
    """Return the launches that run only while undecided, each with what it depends on."""
    wants: dict[tuple[str, str], list[tuple[Comparison, int]]] = {}
    for one in compared:
        for number, planned in enumerate(one.rounds, 1):
            for arm, cell in _arms(one):
                wants.setdefault((cell, planned[arm]), []).append((one, number))
    found = {}
    for (cell, launch), theirs in wants.items():
        if int(launch) <= always[cell] or any(number <= one.least for one, number in theirs):
            continue
        after = {
            (earlier, planned[arm])
            for one, number in theirs
            for planned in one.rounds[: number - 1]
            for arm, earlier in _arms(one)
        }
        found[cell, launch] = Condition(
            comparisons=tuple(one.name for one, _ in theirs),
            after=tuple(sorted(after, key=lambda pair: (pair[0], int(pair[1])))),
            rules=tuple(rule_digest(one) for one, _ in theirs),
        )
    return found


def _arms(one: Comparison) -> list[tuple[str, str]]:
    """Return (arm, cell id) of what a comparison launches."""
    arms = [("baseline", one.baseline), ("variant", one.variant)]
    return [*arms, ("noise", one.baseline)] if one.noise_pair else arms
