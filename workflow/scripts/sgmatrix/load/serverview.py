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
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from sgmatrix.node.batchlog import BatchLine

MIN_LINES = 3
"""Decode lines below which nothing is said of the server's own speed."""
_CLEAN_SHARE = 0.5
"""Part of the decoded tokens that steps without a prefill must have made to speak for all."""


@dataclass(frozen=True)
class UsualSteps:
    """Times of the decode steps without a prefill, by tokens.

    How long the other steps took is not known, so that all steps together have a median between
    `least_median_ms` and `most_median_ms`: where steps differ, by batches that grow and shrink,
    these are apart.
    """

    median_ms: float
    least_median_ms: float
    most_median_ms: float
    least_mean_ms: float
    """Of all steps, if the others were as short as the shortest of these."""


@dataclass(frozen=True)
class ServerView:
    """One load point as the server saw it; None: it did not say."""

    decode_lines: int
    rank_lines: int
    """Decode lines of the data-parallel rank that logged the fewest."""
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
    steps: UsualSteps | None
    """Decode steps without a prefill or idle time before them; None where they made too few of
    the tokens, or where a step makes several per request."""
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
    fewest = min(Counter(line.rank for line in decode).values(), default=0)
    few = asked / len(ranks) if asked is not None and ranks else None
    return ServerView(
        decode_lines=len(decode),
        rank_lines=fewest,
        running_mean=sum(running) / len(running) if running else None,
        running_max=int(max(running)) if running else None,
        queued_max=int(max(queued)) if queued else None,
        queued_share=_queued_share(decode, few) if whole else _queued_share(decode, None),
        token_usage_max=max(usages, default=None),
        retracted=sum(line.retracted or 0 for line in lines) if lines else None,
        cached_share=_cached_share(lines),
        # the first rate of a rank is over a time that began before the point
        peak_output_tok_s=max(_sums(decode, ranks, "output_tok_s", partly=True), default=None)
        if fewest > 1
        else None,
        tpot_ms=sum(steps) / len(steps) if whole and len(steps) >= MIN_LINES else None,
        steps=_usual_steps(spans) if whole else None,
        graph_share=sum(graphs) / len(graphs) if graphs else None,
    )


def _sums(
    decode: Sequence[BatchLine], ranks: Sequence[int], name: str, *, partly: bool = False
) -> list[float]:
    """Return a quantity of all ranks together, at each line: the sum of what each said last.

    A moment at which a rank has said nothing yet is left out; one that has fallen silent since
    has nothing left to do and counts as 0.

    Args:
        decode: the decode lines, in order.
        ranks: that have logged.
        name: of the quantity.
        partly: whether a moment counts though a rank has said nothing yet: the sum is then at
            the least so much, which is enough for a maximum.
    """
    said = {rank: [line.time_s for line in decode if line.rank == rank] for rank in ranks}
    # once for each rank: a line per step makes tens of thousands of lines
    usual_s = {
        rank: statistics.median([b - a for a, b in pairwise(times_s)] or [0.0])
        for rank, times_s in said.items()
    }
    last: dict[int, tuple[float, float]] = {}
    found = []
    for line in decode:
        value = getattr(line, name)
        if value is not None:
            until_s = _holds_until(said[line.rank], usual_s[line.rank], line.time_s)
            last[line.rank] = value, until_s
            if partly or len(last) == len(ranks):
                found.append(sum(one for one, until_s in last.values() if line.time_s <= until_s))
    return found


def _holds_until(times_s: Sequence[float], usual_s: float, now_s: float) -> float:
    """Return until when a rank goes on with what it says now.

    Until its next line, unless that comes after more than two of its usual intervals: then, and
    after its last one, for one interval. Times are whole seconds.
    """
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


def _usual_steps(spans: Sequence[_Span]) -> UsualSteps | None:
    """Return the times per step of spans without a prefill.

    With speculative decoding there is no usual step: how many tokens it makes differs.
    """
    clean = sorted((one.step_ms, one.tokens) for one in spans if one.clean and one.step_ms)
    made = sum(tokens for _, tokens in clean)
    all_made = sum(span.tokens for span in spans)
    if len(clean) < MIN_LINES or made < _CLEAN_SHARE * all_made or any(s.several for s in spans):
        return None
    shortest_ms = clean[0][0]
    clean_ms = math.fsum(step_ms * tokens for step_ms, tokens in clean)
    return UsualSteps(
        median_ms=_quantile_ms(clean, made / 2),
        least_median_ms=_quantile_ms(clean, made - all_made / 2),
        most_median_ms=_quantile_ms(clean, all_made / 2),
        least_mean_ms=(clean_ms + (all_made - made) * shortest_ms) / all_made,
    )


def _quantile_ms(steps: Sequence[tuple[float, int]], passed: float) -> float:
    """Return the time per step at which so many tokens had shorter steps or this one."""
    ends = accumulate(tokens for _, tokens in steps)
    return next(
        (ms for (ms, _), end in zip(steps, ends, strict=True) if end >= passed), steps[-1][0]
    )
