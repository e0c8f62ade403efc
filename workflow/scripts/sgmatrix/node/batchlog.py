"""The server's own account of its batches, from the lines that its scheduler logs.

Every prefill is a line, and every 40th decode step (`--decode-log-interval`). No request is
sent to the server for it, so that nothing is disturbed.

Source    SGLang's metrics_reporter.py and scheduler.py, 0.5.23; older forms ("Decode batch.",
          "Decode out of memory happened.") are read too. Who logs: of each data-parallel rank the
          first tensor rank its batches (`is_stats_logging_rank` of metrics_collector.py), but
          every tensor rank a retraction. With DP attention the tensor ranks are numbered on
          over the data-parallel ranks: the first of ` DP1` may be ` TP4` (`display_tp_rank` of
          data_parallel_controller.py).
Not here  what a window of them says (`load.serverview`), the server's end (`node.logwatch`).
"""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_PIECE_BYTES = 1 << 20
_LINE = re.compile(
    r"\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?P<rank>[^\]]*)\]\s+(?P<tail>TP\d+\]\s+)?"
    r"(?P<kind>Prefill batch|Decode batch|KV cache pool is full|Decode out of memory happened|"
    r"Testing retraction)(?P<rest>.*)"
)
_BAR = re.compile(r"[^\[]{0,1000}\d{1,9}/\d{1,9} \[\d+:\d\d<[^\]]*\]\s*")
"""A progress bar, which ends without a new line. Bounded: an answer that is logged may be a
megabyte of digits, and each of them could begin the count of a bar."""
_RANK = re.compile(r"\b(DP|TP|PP)(\d+)\b")
_NUMBERS = {
    "running": re.compile(r"#running-req: (\d+)"),
    "queued": re.compile(r"#queue-req: (\d+)"),
    "new_tokens": re.compile(r"#new-token: (\d+)"),
    "cached_tokens": re.compile(r"#cached-token: (\d+)"),
    "retracted": re.compile(r"#retracted_reqs: (\d+)"),
}
_RATES = {
    "output_tok_s": re.compile(r"gen throughput \(token/s\): ([0-9.]+)"),
    "accept_len": re.compile(r"\baccept len: ([0-9.]+)"),
}
_USAGE = re.compile(r"(?:\w+ )?token usage: ([0-9.]+)")
_GRAPH = re.compile(r"\b(?:cuda|cpu|npu) graph: (True|False)")


@dataclass(frozen=True)
class BatchLine:
    """One line; what it does not say is None."""

    time_s: float
    """Whole seconds of the server's own clock, counted as if it showed UTC."""
    kind: Literal["prefill", "decode", "retract"]
    rank: int
    """Of data parallelism."""
    running: int | None = None
    """Requests in the batch."""
    queued: int | None = None
    """Requests that wait for a place in it."""
    token_usage: float | None = None
    """Share of the KV pool that is taken; of several pools the fullest."""
    new_tokens: int | None = None
    cached_tokens: int | None = None
    """Prompt tokens that the prefix cache had."""
    output_tok_s: float | None = None
    """Since the last decode line, idle time included."""
    accept_len: float | None = None
    """Tokens per step and request; of speculative decoding only."""
    retracted: int | None = None
    """Running requests that were thrown out of a full pool, to be computed again."""
    graph: bool | None = None
    """Whether the step was replayed from a captured graph."""
    pipelined: bool = False
    """Whether the batch is one of several micro-batches, of which the rate counts all."""
    tensor_rank: int = 0


def batch_line(text: str) -> BatchLine | None:
    """Return what a line of the log says of a batch; None for any other line.

    Of pipeline ranks the first one speaks, since each says the same.
    """
    found = _LINE.match(_after_bars(text))
    if found is None:
        return None
    rest = found["rest"]
    ranks = {
        kind: int(number) for kind, number in _RANK.findall(found["rank"] + (found["tail"] or ""))
    }
    if ranks.get("PP"):
        return None
    time_s = _seconds(found["time"])
    if time_s is None:
        return None
    whole: dict[str, int] = {}
    for name, pattern in _NUMBERS.items():
        if number := pattern.search(rest):
            whole[name] = int(number[1])
    rates = {
        name: float(rate[1]) for name, pattern in _RATES.items() if (rate := pattern.search(rest))
    }
    usages = [float(text) for text in _USAGE.findall(rest)]
    graph = _GRAPH.search(rest)
    kinds: dict[str, Literal["prefill", "decode"]] = {
        "Prefill batch": "prefill",
        "Decode batch": "decode",
    }
    return BatchLine(
        time_s=time_s,
        kind=kinds.get(found["kind"], "retract"),
        rank=ranks.get("DP", 0),
        pipelined="PP" in ranks,
        token_usage=max(usages, default=None),
        graph=graph[1] == "True" if graph else None,
        tensor_rank=ranks.get("TP", 0),
        output_tok_s=rates.get("output_tok_s"),
        accept_len=rates.get("accept_len"),
        **whole,
    )


def _after_bars(text: str) -> str:
    text = text.rpartition("\r")[2]
    bar = _BAR.match(text)
    return text[bar.end() :] if bar else text


def _seconds(text: str) -> float | None:
    try:
        return float(calendar.timegm(time.strptime(text, "%Y-%m-%d %H:%M:%S")))
    except ValueError:
        return None


def log_size(log: Path) -> int:
    """Return how long a log is now, 0 where there is none."""
    try:
        return log.stat().st_size
    except OSError:
        return 0


def batch_lines(log: Path, start: int = 0, end: int | None = None) -> list[BatchLine]:
    """Return the batches of a part of a log.

    Args:
        log: the server's log.
        start: where the part begins, in bytes.
        end: where it ends; default: the end of the log.
    """
    return [line for _, line in placed_lines(log, start, end)]


def placed_lines(log: Path, start: int = 0, end: int | None = None) -> list[tuple[int, BatchLine]]:
    """Return the batches of a part of a log, each with the byte that its line begins at.

    The times of the lines are whole seconds; where a line stands tells more exactly what the
    server was doing. Of each data-parallel rank the first tensor rank speaks for all.
    """
    found = list(_read(log, start, log_size(log) if end is None else end))
    return _first_of_each_group(found)


def _first_of_each_group(found: Sequence[tuple[int, BatchLine]]) -> list[tuple[int, BatchLine]]:
    first: dict[int, int] = {}
    for _, line in found:
        first[line.rank] = min(line.tensor_rank, first.get(line.rank, line.tensor_rank))
    return [(place, line) for place, line in found if line.tensor_rank == first[line.rank]]


def _read(log: Path, place: int, stop: int) -> Iterator[tuple[int, BatchLine]]:
    try:
        with log.open("rb") as file:
            file.seek(place)
            # a piece at a time: a prompt that is logged may be a line of megabytes
            while place < stop and (raw := file.readline(min(_PIECE_BYTES, stop - place))):
                if b"batch" in raw or b"retract" in raw:
                    line = batch_line(raw.decode("utf-8", "replace").rstrip("\r\n"))
                    if line is not None:
                        yield place, line
                place += len(raw)
    except OSError:
        return
