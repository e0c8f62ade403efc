"""What the server itself says of one load point: running, queued, cached, its own speed.

A pure function of the batches that it logged while the load was offered. It is what the
client's numbers are checked against, and the only source of a peak: a rate over the steps
between two lines, which cannot exceed what a rank can do; ranks log at different moments, so
that their sum can be a little high. The client's own peak counts chunks in fixed one-second
buckets, and is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sgmatrix.node.batchlog import BatchLine

MIN_LINES = 3
"""Decode lines below which nothing is said of the server's own speed."""


@dataclass(frozen=True)
class ServerView:
    """One load point as the server saw it; None: it did not say."""

    decode_lines: int
    running_mean: float | None
    """Requests in a decode batch, all ranks together."""
    running_max: int | None
    queued_max: int | None
    queued_share: float | None
    """Share of the decode lines in which requests waited while fewer ran than were asked."""
    token_usage_max: float | None
    retracted: int | None
    """None where no batch was logged at all."""
    cached_share: float | None
    """Of the prompt tokens, those that the prefix cache had."""
    peak_output_tok_s: float | None
    tpot_ms: float | None
    """Mean time of a decode step, prefills between the steps included."""
    graph_share: float | None


def server_view(lines: Sequence[BatchLine], asked: float | None) -> ServerView:
    """Return what the batches of one load point say.

    Args:
        lines: the batches that were logged while it was offered, in order.
        asked: requests that were to run at once, times the share that counts as enough;
            None: no number was asked for, and any queue counts.
    """
    decode = [line for line in lines if line.kind == "decode"]
    ranks = sorted({line.rank for line in decode})
    # of a pipeline each line is about one micro-batch, and how many there are is not said
    whole = not any(line.pipelined for line in decode)
    steps = [step for rank in ranks for step in _step_times_ms(lines, rank)]
    graphs = [line.graph for line in decode if line.graph is not None]
    usages = [line.token_usage for line in lines if line.token_usage is not None]
    running = _sums(decode, ranks, "running") if whole else []
    queued = _sums(decode, ranks, "queued")
    few = asked / len(ranks) if asked is not None and ranks else None
    return ServerView(
        decode_lines=len(decode),
        running_mean=sum(running) / len(running) if running else None,
        running_max=int(max(running)) if running else None,
        queued_max=int(max(queued)) if queued else None,
        queued_share=_queued_share(decode, few) if whole else _queued_share(decode, None),
        token_usage_max=max(usages, default=None),
        retracted=sum(line.retracted or 0 for line in lines) if lines else None,
        cached_share=_cached_share(lines),
        peak_output_tok_s=max(_sums(decode, ranks, "output_tok_s"), default=None),
        tpot_ms=sum(steps) / len(steps) if whole and len(steps) >= MIN_LINES else None,
        graph_share=sum(graphs) / len(graphs) if graphs else None,
    )


def _sums(decode: Sequence[BatchLine], ranks: Sequence[int], name: str) -> list[float]:
    """Return a quantity of all ranks together, at each line: the sum of what each said last.

    A moment at which a rank has said nothing yet is left out.
    """
    last: dict[int, float] = {}
    found = []
    for line in decode:
        value = getattr(line, name)
        if value is not None:
            last[line.rank] = value
            if len(last) == len(ranks):
                found.append(sum(last.values()))
    return found


def _queued_share(decode: Sequence[BatchLine], few: float | None) -> float | None:
    known = [line for line in decode if line.queued is not None and line.running is not None]
    if not known:
        return None
    held = [line for line in known if line.queued and (few is None or (line.running or 0) < few)]
    return len(held) / len(known)


def _cached_share(lines: Sequence[BatchLine]) -> float | None:
    prefills = [line for line in lines if line.kind == "prefill" and line.cached_tokens is not None]
    cached = sum(line.cached_tokens or 0 for line in prefills)
    whole = cached + sum(line.new_tokens or 0 for line in prefills)
    return cached / whole if whole else None


def _step_times_ms(lines: Sequence[BatchLine], rank: int) -> list[float]:
    """Return the time per step between two decode lines of a rank, where it was never idle.

    Of the first line after an idle time the rate counts the idle time too.
    """
    mine = [line for line in lines if line.rank == rank and line.kind in ("prefill", "decode")]
    steps = []
    idle = True
    previous: BatchLine | None = None
    for line in mine:
        if line.kind == "prefill":
            idle = idle or not line.running
            continue
        busy = previous is not None and not idle
        if busy and line.output_tok_s and line.running and previous and previous.running:
            steps.append(1e3 * (previous.running + line.running) / 2 / line.output_tok_s)
        previous, idle = line, False
    return steps
