"""What the server itself says of one load point: running, queued, cached, its own speed.

A pure function of the batches that it logged while the load was offered. It is what the
client's numbers are checked against, and the only source of a peak: a rate over the steps
between two lines, which cannot exceed what a rank can do; ranks log at different moments, so
that their sum can be a little high. The client's own peak counts chunks in fixed one-second
buckets, and is not used.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sgmatrix.node.batchlog import BatchLine

MIN_LINES = 3
"""Decode lines below which nothing is said of the server's own speed."""
_CLEAN_SHARE = 0.5
"""Part of the decoded tokens that steps without a prefill must have made to speak for all."""


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
    """Of the prompt tokens, those that the prefix cache had, up to the first retraction."""
    peak_output_tok_s: float | None
    tpot_ms: float | None
    """Mean time of a decode step, prefills between the steps included."""
    step_ms: float | None
    """Time of a usual decode step, those with a prefill or idle time before them left out; None
    where they made too few of the tokens, or where a step makes several per request."""
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
    spans = [span for rank in ranks for span in _spans(lines, rank)]
    steps = [span.step_ms for span in spans if span.step_ms is not None]
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
        step_ms=_usual_step_ms(spans) if whole else None,
        graph_share=sum(graphs) / len(graphs) if graphs else None,
    )


def _sums(decode: Sequence[BatchLine], ranks: Sequence[int], name: str) -> list[float]:
    """Return a quantity of all ranks together, at each line: the sum of what each said last.

    A moment at which a rank has said nothing yet is left out; one that has fallen silent since
    has nothing left to do and counts as 0.
    """
    said = {rank: [line.time_s for line in decode if line.rank == rank] for rank in ranks}
    last: dict[int, tuple[float, float]] = {}
    found = []
    for line in decode:
        value = getattr(line, name)
        if value is not None:
            last[line.rank] = value, _holds_until(said[line.rank], line.time_s)
            if len(last) == len(ranks):
                found.append(sum(one for one, until_s in last.values() if line.time_s <= until_s))
    return found


def _holds_until(times_s: Sequence[float], now_s: float) -> float:
    """Return until when a rank goes on with what it says now.

    Until its next line, unless that comes after more than two of its usual intervals: then, and
    after its last one, for one interval. Times are whole seconds.
    """
    usual_s = statistics.median([b - a for a, b in pairwise(times_s)] or [0.0])
    place = bisect_left(times_s, now_s + 0.5)
    following_s = times_s[place] if place < len(times_s) else math.inf
    if following_s - now_s <= 2 * usual_s + 1:
        return following_s
    return now_s + max(usual_s, 1.0)


def _queued_share(decode: Sequence[BatchLine], few: float | None) -> float | None:
    known = [line for line in decode if line.queued is not None and line.running is not None]
    if not known:
        return None
    held = [line for line in known if line.queued and (few is None or (line.running or 0) < few)]
    return len(held) / len(known)


def _cached_share(lines: Sequence[BatchLine]) -> float | None:
    """Return the share of the prompt tokens that the cache had.

    A request that was retracted is prefilled again and finds itself there: what comes after a
    retraction says nothing of other requests.
    """
    first = next((i for i, line in enumerate(lines) if line.kind == "retract"), len(lines))
    before = lines[:first]
    prefills = [
        line for line in before if line.kind == "prefill" and line.cached_tokens is not None
    ]
    cached = sum(line.cached_tokens or 0 for line in prefills)
    whole = cached + sum(line.new_tokens or 0 for line in prefills)
    return cached / whole if whole else None


@dataclass(frozen=True)
class _Span:
    """What a decode line says of the steps since the one before it."""

    step_ms: float | None
    """Mean time per step; None where the server was idle between, or did not say."""
    tokens: int
    """Requests in the batch: so many tokens a step makes."""
    clean: bool
    """Whether nothing was prefilled between."""
    several: bool
    """Whether a step makes more than one token per request."""


def _spans(lines: Sequence[BatchLine], rank: int) -> list[_Span]:
    """Return the spans of a rank; of the first line after an idle time the rate counts that too."""
    mine = [line for line in lines if line.rank == rank and line.kind in ("prefill", "decode")]
    spans = []
    idle = clean = True
    previous: BatchLine | None = None
    for line in mine:
        if line.kind == "prefill":
            idle, clean = idle or not line.running, False
            continue
        step_ms = None
        busy = previous is not None and not idle
        if busy and line.output_tok_s and line.running and previous and previous.running:
            step_ms = 1e3 * (previous.running + line.running) / 2 / line.output_tok_s
        several = (line.accept_len or 1.0) > 1.0
        spans.append(_Span(step_ms, line.running or 0, clean, several))
        previous, idle, clean = line, False, True
    return spans


def _usual_step_ms(spans: Sequence[_Span]) -> float | None:
    """Return the median over tokens of the time per step, of spans without a prefill.

    With speculative decoding there is no usual step: how many tokens it makes differs.
    """
    clean = sorted((one.step_ms, one.tokens) for one in spans if one.clean and one.step_ms)
    made = sum(tokens for _, tokens in clean)
    enough = made >= _CLEAN_SHARE * sum(span.tokens for span in spans)
    if len(clean) < MIN_LINES or not enough or any(span.several for span in spans):
        return None
    passed = 0
    for step_ms, tokens in clean:
        passed += tokens
        if 2 * passed >= made:
            return step_ms
    return None
