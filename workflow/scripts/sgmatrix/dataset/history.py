"""The history of a campaign: all attempts, and the files in it that are not what they should be.

A file counts as a whole or not at all. What is truncated, of another version, or of another
attempt than the folder it lies in (a copy) is left out, and is named.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import Layout, base_launch


@dataclass(frozen=True, order=True)
class LeftOut:
    """A file or folder of the history that no table holds."""

    path: str
    """Below the folder of the campaign."""
    why: str

    def __str__(self) -> str:
        return f"left out: {self.path} {self.why}"


@dataclass(frozen=True)
class Attempt:
    """One attempt in the history."""

    folder: Path
    spec: dict[str, Any]
    server: dict[str, Any] | None
    final: dict[str, Any] | None
    """None: interrupted, never the current one."""
    current: bool
    left_out: set[LeftOut] = field(default_factory=set, compare=False, repr=False)
    """Its files that are not whole or not its own; those of its points once they were read."""
    _points: dict[str, dict[str, Any] | None] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def identity(self) -> dict[str, Any]:
        """Return what all its records and rows have in common."""
        names = {name: self.spec[name] for name in ("campaign", "launch", "attempt")}
        return {**names, "cell": self.spec["cell"]["id"]}

    def point(self, load_id: str) -> dict[str, Any] | None:
        """Return the record of a point, which is read once; None where there is none to trust."""
        if load_id not in self._points:
            file = self.folder / "points" / f"{load_id}.json"
            identity = {**self.identity, "load_id": load_id}
            record, why = read_record(file, identity)
            if record is not None:
                from sgmatrix.dataset.record_types import point_unfit  # pulls pyarrow in

                why = point_unfit(record)
            if why is not None:
                record = None
                self.leave_out(file, why)
            self._points[load_id] = record
        return self._points[load_id]

    def leave_out(self, file: Path, why: str) -> None:
        """Note a file that is not used."""
        self.left_out.add(LeftOut(_shown(file, self.folder.parents[3]), why))


@dataclass(frozen=True)
class History:
    """What the folder `history` of a campaign holds."""

    attempts: list[Attempt]
    """In a fixed order."""
    folders_left_out: tuple[LeftOut, ...]

    def left_out(self) -> list[LeftOut]:
        """Return all that was left out so far, by path."""
        found = {one for attempt in self.attempts for one in attempt.left_out}
        return sorted(found.union(self.folders_left_out))


def read_record(
    path: Path, identity: Mapping[str, Any]
) -> tuple[dict[str, Any] | None, str | None]:
    """Return a JSON record, or why it is not one of that identity; neither: there is none."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)
    except FileNotFoundError:
        return None, None
    except OSError as error:
        return None, f"cannot be read: {error.strerror}"
    except (ValueError, RecursionError) as error:
        return None, f"is no whole JSON: {error}"
    if not isinstance(record, dict):
        return None, "is no record"
    for name, own in identity.items():
        if record.get(name, own) != own:
            return None, f"is of {name} {record[name]}, not {own}: a copy"
    return record, None


def _no_number(text: str) -> float:
    """Refuse what JSON has no word for, and no record of ours holds."""
    raise ValueError(f"{text} is no number")


def read_attempts(layout: Layout) -> list[Attempt]:
    """Return all attempts of the history in a fixed order."""
    return read_history(layout).attempts


def read_history(layout: Layout) -> History:
    """Return the history of a campaign.

    The current attempt of a launch is its newest complete one.
    """
    campaign = (read_json_or_none(layout.plan) or {}).get("campaign")
    strays = [
        LeftOut(_shown(folder, layout.root), "is no attempt: its name is no number")
        for folder in layout.strays()
    ]
    newest: dict[tuple[str, str], int] = {}
    keys: dict[tuple[str, str], str] = {}
    found = []
    for cell, launch, number, folder in layout.all_attempts():
        spec, why = _spec(folder, campaign, cell, launch, number)
        if why is not None:
            strays.append(LeftOut(_shown(folder, layout.root), why))
        if spec is None:
            continue  # the warden was ended before it wrote down what it was to start
        identity = {"cell": cell, "launch": launch, "attempt": number}
        bad = set()
        records = []
        for name in ("teardown.json", "server.json"):
            record, why = read_record(folder / name, identity)
            if record is not None and name == "teardown.json":
                from sgmatrix.dataset.record_types import final_unfit  # pulls pyarrow in

                why = final_unfit(record)
            if why is not None:
                record = None
                bad.add(LeftOut(_shown(folder / name, layout.root), why))
            records.append(record)
        found.append((cell, launch, number, folder, spec, records, bad))
        if records[0] is not None:
            newest[cell, launch] = number  # they come in rising order
            keys[cell, launch] = spec["cell"]["key"]
    attempts = []
    for cell, launch, number, folder, spec, (final, server), bad in found:
        # an extra launch completes a launch of the same server, and ends to count with it
        of_this_server = spec["cell"]["key"] == keys.get((cell, base_launch(launch)))
        current = newest.get((cell, launch)) == number and of_this_server
        attempts.append(Attempt(folder, spec, server, final, current, bad))
    return History(attempts, tuple(strays))


def _spec(
    folder: Path, campaign: str | None, cell: str, launch: str, number: int
) -> tuple[dict[str, Any] | None, str | None]:
    """Return what an attempt was to start, or why the folder is not that attempt."""
    spec, why = read_record(folder / "spec.json", {})
    if spec is None:
        return None, None if why is None else f"has a spec.json that {why}"
    try:
        said = (spec["campaign"], spec["cell"]["id"], spec["launch"], spec["attempt"])
        cell_key, points = spec["cell"]["key"], spec["points"]
    except (KeyError, TypeError):
        return None, "has a spec.json that is no record of an attempt"
    if not isinstance(cell_key, str) or not isinstance(points, list):
        return None, "has a spec.json that is no record of an attempt"
    names = ("campaign", "cell", "launch", "attempt")
    for name, theirs, ours in zip(names, said, (campaign, cell, launch, number), strict=True):
        if theirs != ours and ours is not None:
            return None, f"is a copy: its spec.json is of {name} {theirs}, not {ours}"
    return spec, None


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()
