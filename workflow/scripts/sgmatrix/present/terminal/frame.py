"""The block at the bottom of the terminal: a pure function of what is known and of its size.

A line never has as many characters as the terminal is wide, and holds printable ASCII only, so
that nothing wraps and a character is a column. A status is a word; its mark and weight repeat it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sgmatrix.present.estimate import clock
from sgmatrix.present.terminal.cells import CellState
from sgmatrix.present.terminal.readings import Readings, total
from sgmatrix.present.terminal.state import State

MIN_WIDTH, MIN_HEIGHT = 32, 9
"""Of a terminal that has room for a block."""
HEAD = ("cell", "status", "points", "best tok/s", "at", "TPOT ms", "flags")
RUNNING, FAILED, OTHER = "> ", "! ", "  "
"""What a row of the table begins with."""

_LEFT = (0, 1, 6)
"""Columns of text."""
_DROPPED = (6, 4, 5, 2)
"""Columns that a narrow terminal goes without, the first one first."""
_SHORTEST_CELL, _LONGEST_BAR = 10, 40
_LINES_ABOVE_TABLE = 4


def frame(state: State, width: int, height: int, now_s: float) -> list[str]:
    """Return the lines of the block; always as many for one size, none where it is too small.

    Args:
        state: of the campaign.
        width: columns of the terminal.
        height: lines of the terminal; at least a quarter of them, and four, are left for others.
        now_s: unix time.
    """
    if width < MIN_WIDTH or height < MIN_HEIGHT:
        return []
    room = height - max(4, height // 4) - _LINES_ABOVE_TABLE
    lines = [
        _campaign(state, width - 1, now_s),
        _running(state, width - 1, now_s),
        f"last  {state.last}" if state.last else "",
        _readings(state.readings, width - 1),
        *_table(list(state.cells.values()), width - 1, room),
    ]
    return [middle(_ascii(line), width - 1) for line in lines]


def middle(text: str, width: int) -> str:
    """Return a text of at most that many characters, cut in its middle."""
    if len(text) <= width:
        return text
    kept = max(0, width - 2)
    tail = kept // 2
    return text[: kept - tail] + ".."[:width] + (text[-tail:] if tail else "")


def _ascii(text: str) -> str:
    printable = (one if " " <= one <= "~" else "?" for one in text)
    return "".join(printable)


def _campaign(state: State, width: int, now_s: float) -> str:
    cells = state.cells.values()
    ended = sum(len(one.ended) for one in cells)
    done = sum(one.points_done for one in cells)
    points = sum(one.points for one in cells)
    left_s = state.left_s(now_s)
    parts = [  # how long each is kept, and what it says, in the order in which they stand
        (0, middle(state.plan.campaign, max(10, width // 3))),
        (4, f"launches {ended}/{len(state.loads)}"),
        (1, f"points {done}/{points}"),
        (3, f"elapsed {clock(now_s - state.start_s)}"),
        (2, "" if left_s is None else f"about {clock(left_s)} left"),
    ]
    parts = [one for one in parts if one[1]]
    while len("  ".join(text for _, text in parts)) > width and len(parts) > 1:
        parts.remove(max(parts))
    line = "  ".join(text for _, text in parts)
    size = min(_LONGEST_BAR, width - len(line) - 4)
    if size < 10 or not points:
        return line
    full = size * done // points
    return f"{line}  [{'#' * full}{'.' * (size - full)}]"


def _running(state: State, width: int, now_s: float) -> str:
    if not state.running:
        return state.phase
    one = list(state.running.values())[-1]
    others = len(state.running) - 1
    end = f", {clock(now_s - one.since_s)}" + (f" (and {others} more)" if others else "")
    room = width - len(one.phase) - len(end) - 1
    return f"{middle(one.who, max(_SHORTEST_CELL, room))} {one.phase}{end}"


def _readings(readings: Readings, width: int) -> str:
    gpus = readings.gpus
    if not gpus:
        parts = [
            _number("CPU ", readings.cpu_busy_share, " %", 100),
            _number("engine ", readings.engine_memory_mib, " GiB", 1 / 1024, ".1f"),
        ]
        told = "  ".join(part for part in parts if part)
        return f"node  {told}" if told else ""
    power_w = total([one.power_w for one in gpus])
    memory = total([one.memory_used_mib for one in gpus])
    shares = total([one.utilization_share for one in gpus])
    share = None if shares is None else shares / len(gpus)
    line = f"{len(gpus)} GPU{'' if len(gpus) == 1 else 's'}" + _gpu(power_w, share, memory)
    each = [
        f"{one.index}:" + _gpu(one.power_w, one.utilization_share, one.memory_used_mib)
        for one in gpus
    ]
    whole = "  | ".join([line, *each])
    return whole if len(gpus) > 1 and len(whole) <= width else line


def _gpu(power_w: float | None, share: float | None, memory_mib: float | None) -> str:
    return "".join(
        f" {text}"
        for text in (
            _number("", power_w, " W"),
            _number("", share, " %", 100),
            _number("", memory_mib, " GiB", 1 / 1024),
        )
        if text
    )


def _number(
    before: str, value: float | None, unit: str, scale: float = 1.0, form: str = ",.0f"
) -> str:
    return "" if value is None else f"{before}{value * scale:{form}}{unit}"


def _table(cells: Sequence[CellState], width: int, room: int) -> list[str]:
    """Return the head, the rows that there is room for, and the count of the others."""
    if not cells or room < min(3, 1 + len(cells)):
        return []
    shown, rest = _chosen(cells, room - 1)
    rows = [_row(one) for one in shown]
    columns = list(range(len(HEAD)))
    longest = max((len(row[0]) for row in rows), default=0)
    for dropped in (None, *_DROPPED):
        if dropped is not None:
            columns.remove(dropped)
        widths = {i: max(len(row[i]) for row in [HEAD, *rows]) for i in columns}
        others = sum(widths[i] + 2 for i in columns[1:]) + len(OTHER)
        if others + min(longest, _SHORTEST_CELL) <= width:
            break
    widths[0] = max(len(HEAD[0]), min(widths[0], width - others))
    widths[1] = min(widths[1], max(len("not run"), width - len(OTHER) - widths[0] - 2))
    lines = [OTHER + _joined(HEAD, columns, widths)]
    lines += [
        _MARKS.get(one.status, OTHER) + _joined(row, columns, widths)
        for one, row in zip(shown, rows, strict=True)
    ]
    return [*lines, _counted(rest)] if rest else lines


_MARKS = {"running": RUNNING, "failed": FAILED}


def _joined(row: Sequence[str], columns: Sequence[int], widths: dict[int, int]) -> str:
    texts = [
        middle(row[i], widths[i]).ljust(widths[i]) if i in _LEFT else row[i].rjust(widths[i])
        for i in columns
    ]
    return "  ".join(texts).rstrip()


def _row(one: CellState) -> tuple[str, ...]:
    best = one.best
    return (
        one.cell,
        f"failed: {one.reason}" if one.status == "failed" else one.status,
        f"{one.points_done}/{one.points}",
        f"{best.output_tok_s:,.0f}" if best else "",
        best.at if best else "",
        f"{best.tpot_ms:.2f}" if best and best.tpot_ms is not None else "",
        best.flags if best else "",
    )


def _chosen(
    cells: Sequence[CellState], room: int
) -> tuple[Sequence[CellState], Sequence[CellState]]:
    """Return the cells to show, the running and best ones where not all fit, and the others."""
    if len(cells) <= room:
        return cells, ()

    def rank(one: CellState) -> tuple[bool, float]:
        best = one.best
        return one.status != "running", -(best.output_tok_s if best else -1.0)

    order = sorted(cells, key=rank)  # stable: as in the plan where nothing tells them apart
    kept = max(1, room - 1)
    return order[:kept], order[kept:]


def _counted(rest: Sequence[CellState]) -> str:
    counts = Counter(one.status for one in rest)
    told = ", ".join(f"{counts[name]} {name}" for name in sorted(counts))
    return f"{OTHER}and {len(rest)} more cell{'' if len(rest) == 1 else 's'}: {told}"
