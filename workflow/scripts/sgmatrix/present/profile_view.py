"""Profiles as the terminal and the report show them: one table for each rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import PROFILE, Layout
from sgmatrix.present.clean import clean

_NAME_AT_MOST = 60
HEAD = ("component", "ms", "ms per step", "share", "count", "most of it")
_TEXT_COLUMNS = (0, 5)
_PREFILL = ("EXTEND", "MIXED")
_IDLE = {
    "gpu": "the device waits for the host, or for another one",
    "cpu": "between operators: Python, or waiting for another rank",
}


@dataclass(frozen=True)
class RankView:
    """The table of one rank."""

    title: str
    summary: str
    """The window, and how much of it the device was busy; or why there is no table."""
    lines: tuple[tuple[str, ...], ...]
    """In the columns of `HEAD`."""
    problem: bool


@dataclass(frozen=True)
class ProfileView:
    """The profile of one cell."""

    cell: str
    about: str
    failure: str
    """Why it failed; empty where it did not."""
    ranks: tuple[RankView, ...]
    traces: str
    """Where they are, and how large; empty where there are none."""


def profile_of(layout: Layout, cell: str) -> dict[str, Any] | None:
    """Return the published profile of a cell; None where there is none."""
    found: dict[str, Any] | None = read_json_or_none(layout.launch(cell, PROFILE) / "profile.json")
    return found


def profiles_made(layout: Layout, cells: Iterable[str]) -> list[str]:
    """Return cell and attempt of each profile that there is."""
    found = ((cell, profile_of(layout, cell)) for cell in cells)
    return [f"{cell}/{one['attempt']}" for cell, one in found if one is not None]


def profile_views(layout: Layout, cells: Iterable[str]) -> list[ProfileView]:
    """Return the profiles of the cells that have one."""
    return [_view(one) for cell in cells if (one := profile_of(layout, cell)) is not None]


def profile_text(layout: Layout, cell: str) -> str:
    """Return what the terminal shows of a cell's profile."""
    record = profile_of(layout, cell)
    if record is None:
        return f"{cell} has no profile"
    view = _view(record)
    parts = [f"profile of {view.cell}: {view.about}"]
    if view.failure:
        parts.append(view.failure)
    for rank in view.ranks:
        parts.append(f"\n{rank.title}: {rank.summary}")
        parts.extend(_aligned(rank.lines))
    if view.traces:
        parts.append(f"\n{view.traces}")
    return "\n".join(parts)


def _view(record: dict[str, Any]) -> ProfileView:
    tables = record.get("tables") or []
    failed = record["status"] != "ok"
    return ProfileView(
        cell=record["cell"],
        about=f"{record['concurrency']} requests at once, {record['input_len']} tokens in, "
        f"{record['output_len']} out, {record['steps']} steps asked for; not a timed launch, the "
        "profiler slows it down",
        failure=f"{record['status']}: {record['reason']}: {record['detail'] or 'nothing more said'}"
        if failed
        else _missing(record, len(tables)),
        ranks=tuple(_rank(table, record) for table in tables),
        traces=_traces(record),
    )


def _missing(record: dict[str, Any], tables: int) -> str:
    if tables >= record["ranks"]:
        return ""
    return f"{tables} of {record['ranks']} ranks wrote a trace"


def _rank(table: dict[str, Any], record: dict[str, Any]) -> RankView:
    title = f"rank {table['rank']}"
    if table["problem"]:
        return RankView(title, f"its trace could not be read: {table['problem']}", (), True)
    if table["device"] is None:
        return RankView(title, "its trace has no kernel and no operator", (), True)
    steps = sum(table["steps"].values())
    device, window, busy = table["device"].upper(), table["window_ms"], table["busy_share"]
    longest = f"longest {table['gap_longest_ms']:.3f} ms"
    said = [
        f"{device} busy {100 * busy:.1f} % of {window:.2f} ms",
        f"idle {table['gap_ms']:.2f} ms in {table['gaps']} gaps ({longest})",
        f"steps: {_steps(table['steps'])}",
    ]
    if table["sum_ms"] > table["busy_ms"] * 1.001:
        which = "streams" if table["device"] == "gpu" else "threads"
        said.insert(1, f"{which} overlap: {table['sum_ms']:.2f} ms in all")
    lines = [_line(row, steps) for row in table["rows"]]
    idle = _number(table["gap_ms"]), _number(table["gap_ms"] / steps) if steps else ""
    lines.append(("(idle)", *idle, "", str(table["gaps"]), _IDLE[table["device"]]))
    doubts = list(_doubts(table["steps"], record["steps"]))
    return RankView(title, "; ".join([*said, *doubts]), tuple(lines), bool(doubts))


def _doubts(steps: dict[str, int], asked: int) -> Iterator[str]:
    """Yield why a window is not the decode steps that were asked for."""
    if steps and sum(steps.values()) < asked:
        yield f"fewer than the {asked} steps asked for"
    if any(name.startswith(_PREFILL) for name in steps):
        yield "a prefill is among them"


def _steps(steps: dict[str, int]) -> str:
    return ", ".join(f"{count} x {name}" for name, count in steps.items()) or "not named by it"


def _line(row: dict[str, Any], steps: int) -> tuple[str, ...]:
    first = clean(row["top"][0]["name"])
    return (
        row["component"],
        _number(row["ms"]),
        _number(row["ms"] / steps) if steps else "",
        "" if row["share"] is None else f"{100 * row['share']:.1f} %",
        str(row["count"]),
        first if len(first) <= _NAME_AT_MOST else f"{first[: _NAME_AT_MOST - 1]}…",
    )


def _number(value: float) -> str:
    return f"{value:.3f}"


def _traces(record: dict[str, Any]) -> str:
    if not record.get("traces"):
        return ""
    size = sum(one["bytes"] for one in record["traces"]) / 1e6
    count = len(record["traces"])
    return (
        f"{count} trace{'' if count == 1 else 's'}, {size:.1f} MB, in {record['traces_in']}: "
        "https://ui.perfetto.dev opens them"
    )


def _aligned(lines: Iterable[tuple[str, ...]]) -> list[str]:
    table = [HEAD, *lines]
    widths = [max(len(line[n]) for line in table) for n in range(len(HEAD))]
    return [
        "  ".join(
            text.ljust(width) if n in _TEXT_COLUMNS else text.rjust(width)
            for n, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    ]
