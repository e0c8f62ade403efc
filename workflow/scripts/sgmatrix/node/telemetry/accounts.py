"""Whose CPU time it was: the engine's, the harness's, or that of neither.

Engine   all descendants of the warden, but for the sampler.
Harness  the owner (Snakemake) and all its descendants, the warden, the sampler; not the engine.
         Another warden below the same owner counts with its server as harness.

A process keeps its side for life, wherever its parents go: a job's orphan stays harness.
The kernel adds a child's time to its parent's `waited` when the parent collects it, so a child
that lived between two looks is counted there, and one that was seen alive must not be counted
again: what was counted of it is a debt that its parent's next growth of `waited` pays.
Not here  threads and what they wait for (`runqueue`), the machine's own time (`procfs`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from sgmatrix.node.proc import Identity
from sgmatrix.node.telemetry import procfs
from sgmatrix.node.telemetry.procfs import ProcessStat

Side = Literal["engine", "harness"]
_SIDES: tuple[Side, Side] = ("engine", "harness")
_FULL_LOOK = 120
"""Looks between two at which also the pids that are no news are read: numbers are reused."""


@dataclass(slots=True)
class _Member:
    """A process of ours as it was last seen."""

    side: Side
    brood: Side
    """Side of its children; the warden is harness, its children are the engine."""
    stat: ProcessStat


@dataclass(frozen=True)
class Usage:
    """What the two sides have used since the first look, and the engine as it is now."""

    engine_ticks: int
    harness_ticks: int
    engine_pids: list[int]
    engine_threads: int
    engine_rss_bytes: int
    """Sum over processes; what they share counts in each."""
    warden_alive: bool


class Accounts:
    """The books of one server's node."""

    def __init__(
        self,
        warden: Identity,
        owner: Identity,
        *,
        sampler: int | None = None,
        pids: Callable[[], list[int]] = procfs.pids,
        read: Callable[[int], ProcessStat | None] = procfs.process,
    ) -> None:
        self._warden = warden
        self._sampler = os.getpid() if sampler is None else sampler
        self._owner = owner
        self._pids, self._read = pids, read
        self._members: dict[int, _Member] = {}
        """Parents before their children, so that no child is seen alive and waited for at once."""
        self._seen: set[int] = set()
        self._looks = 0
        self._total: dict[Side, int] = dict.fromkeys(_SIDES, 0)
        self._debt: dict[Side, int] = dict.fromkeys(_SIDES, 0)
        self._engine_ever: set[int] = set()

    def was_engine(self, pid: int) -> bool:
        """Tell whether a process is or was the engine's."""
        return pid in self._engine_ever

    def look(self) -> Usage:
        """Bring the books up to date."""
        first = self._looks == 0
        present = self._pids()
        grown = dict.fromkeys(_SIDES, 0)
        waited = dict.fromkeys(_SIDES, 0)
        gone = dict.fromkeys(_SIDES, 0)
        for pid, member in list(self._members.items()):
            now = self._read(pid)
            if now is None or now.started != member.stat.started:
                gone[member.side] += member.stat.own + member.stat.waited
                del self._members[pid]
                continue
            grown[member.side] += now.own - member.stat.own
            waited[member.brood] += now.waited - member.stat.waited
            member.stat = now
        for member in self._join(present):
            if not first:  # what it did before the first look is none of these books
                grown[member.side] += member.stat.own
                waited[member.brood] += member.stat.waited
        for side in _SIDES:
            owed = self._debt[side] + gone[side]
            paid = min(owed, waited[side])
            self._total[side] += grown[side] + waited[side] - paid
            # one look longer: a child may be collected after its parent was read; no longer,
            # since a child that nobody collects is never paid for
            self._debt[side] = min(owed - paid, gone[side])
        self._looks += 1
        return self._usage()

    def _join(self, present: list[int]) -> Iterator[_Member]:
        """Take in the processes of ours that are new, parents first; yield them."""
        known = self._members.keys() if self._looks % _FULL_LOOK == 0 else self._seen
        fresh: dict[int, ProcessStat] = {}
        for pid in present:
            if pid not in known and pid not in self._members and (stat := self._read(pid)):
                fresh[pid] = stat
        before = len(self._members)
        for pid in fresh:
            self._place(pid, fresh)
        # a parent that the listing missed, or that ended while we looked: look again next time
        known_parents = {0, *fresh, *self._members, *self._seen}
        unclear = {pid for pid, stat in fresh.items() if stat.parent not in known_parents}
        self._seen = set(present) - unclear
        yield from list(self._members.values())[before:]

    def _place(self, pid: int, fresh: dict[int, ProcessStat]) -> _Member | None:
        if pid in self._members or pid not in fresh:
            return self._members.get(pid)
        stat = fresh[pid]
        parent = self._place(stat.parent, fresh)
        side: Side
        if (pid, stat.started) == (self._warden.pid, self._warden.ticks):
            member = _Member("harness", "engine", stat)
        elif pid == self._sampler or (pid, stat.started) == (self._owner.pid, self._owner.ticks):
            member = _Member("harness", "harness", stat)
        elif parent is not None:
            side = parent.brood
            member = _Member(side, side, stat)
        else:
            return None
        self._members[pid] = member
        if member.side == "engine":
            self._engine_ever.add(pid)
        return member

    def _usage(self) -> Usage:
        engine = {
            pid: member.stat
            for pid, member in self._members.items()
            if member.side == "engine" and member.stat.state not in "ZX"
        }
        warden = self._members.get(self._warden.pid)
        return Usage(
            engine_ticks=self._total["engine"],
            harness_ticks=self._total["harness"],
            engine_pids=list(engine),
            engine_threads=sum(stat.threads for stat in engine.values()),
            engine_rss_bytes=sum(s.rss_pages for s in engine.values()) * procfs.PAGE_BYTES,
            warden_alive=warden is not None
            and warden.brood == "engine"
            and warden.stat.state not in "ZX",
        )
