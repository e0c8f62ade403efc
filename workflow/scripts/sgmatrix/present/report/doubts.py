"""What failed, and what is not to be trusted without a second look."""

from __future__ import annotations

from collections.abc import Sequence

from sgmatrix.core.flags import Flag, flags_of
from sgmatrix.dataset.figures import Row, offered
from sgmatrix.present.cells import CellView
from sgmatrix.present.outcome import Outcome


def failure_lines(cell: CellView) -> list[tuple[str, Outcome]]:
    """Return how a cell failed, launches that failed alike together: (which ones, how)."""
    alike: dict[tuple[str | None, str], list[Outcome]] = {}
    for one in cell.failures:
        alike.setdefault((one.reason, one.root), []).append(one)
    return [
        (
            ("launches " if len(ones) > 1 else "launch ") + ", ".join(one.launch for one in ones),
            ones[0],
        )
        for ones in alike.values()
    ]


def doubts(cells: Sequence[CellView]) -> list[tuple[Flag, list[tuple[str, str, str]]]]:
    """Return each flag with the cells that have it: (cell, at which loads, why at the first)."""
    found: dict[str, tuple[Flag, dict[str, list[Row]]]] = {}
    for cell in cells:
        for row in cell.flagged:
            for flag in flags_of(row["validity"]):
                _, where = found.setdefault(flag.name, (flag, {}))
                where.setdefault(cell.cell, []).append(row)
    return [
        (
            flag,
            [(cell, _at_loads(rows), _why(rows[0], flag.name)) for cell, rows in where.items()],
        )
        for flag, where in found.values()
    ]


def flag_lines(cell: CellView) -> list[str]:
    """Return each flag of a cell's points with the loads that have it, each once."""
    loads: dict[str, list[Row]] = {}
    for row in cell.flagged:
        for flag in flags_of(row["validity"]):
            loads.setdefault(flag.name, []).append(row)
    return [f"{name} at {_at_loads(rows)}" for name, rows in loads.items()]


def _why(row: Row, flag: str) -> str:
    """Return why a point has a flag; empty where its record does not say."""
    told = str(row.get("validity_detail") or "").split(" | ")
    begin = f"{flag}: "
    return next((text.removeprefix(begin) for text in told if text.startswith(begin)), "")


def _at_loads(rows: Sequence[Row]) -> str:
    """Return the loads of some points, each once: `concurrency 1, 8`, or `2.5/s`."""
    closed = [offered(row["concurrency"], None) for row in rows if row["concurrency"] is not None]
    opened = [offered(None, rate) for row in rows if (rate := row.get("request_rate")) is not None]
    kinds = (("concurrency ", closed), ("", opened))
    return ", ".join(name + ", ".join(dict.fromkeys(loads)) for name, loads in kinds if loads)
