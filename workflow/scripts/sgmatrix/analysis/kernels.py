"""Where the time of a profiled window went: device time by component, and gaps.

The device is the GPU where the trace has kernels: its kernels, copies and fills count. Else it is
the CPU: the operators of its threads that are in no other operator, so that nested ones are not
counted twice.

Notation  sum: durations added up; busy: time in which anything ran on any stream. Where streams
          overlap the sum is above the busy time, and may be above the window.
          gap: time of the window in which nothing ran: the host was the limit.
          window: begin of the first event to the end of the last one.
Source    `step[DECODE bs=8]` annotations: sglang 0.5.23, srt/model_executor/step_span_utils.py.
Not here  names (`components`), files (`traces`).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgmatrix.analysis.components import COMPONENTS, MEMCPY, component_of

_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
_STEP = "step["
_TOP = 5
"""Names that are told of each component."""


@dataclass(frozen=True, slots=True)
class _Span:
    begin: float
    """Microseconds, as all times of a trace."""
    end: float
    thread: tuple[Any, Any]
    name: str
    component: str


def tabulate(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the events of one rank's trace say.

    Returns:
        `device` (gpu or cpu; None where nothing ran), `window_ms`, `busy_ms`, `busy_share`,
        `gap_ms`, `gaps`, `gap_longest_ms`, `sum_ms`, `steps` (name of a step to how many of them),
        and `rows`: component, `ms`, `share` of the sum, `count`, `top` (name, ms, count).
    """
    gpu: list[_Span] = []
    cpu: list[_Span] = []
    steps: Counter[str] = Counter()
    for event in events:
        kind = event.get("cat")
        if event.get("ph") != "X":
            continue
        if kind in _GPU:
            gpu.append(_span(event, MEMCPY if kind != "kernel" else component_of(event["name"])))
        elif kind == "cpu_op":
            cpu.append(_span(event, component_of(event["name"])))
        elif kind == "user_annotation" and event["name"].startswith(_STEP):
            steps[event["name"].removeprefix(_STEP).rstrip("]")] += 1
    spans = gpu or list(_outermost(cpu))
    device = ("gpu" if gpu else "cpu") if spans else None
    return {"device": device, "steps": dict(sorted(steps.items())), **_times(spans)}


def _span(event: Mapping[str, Any], component: str) -> _Span:
    begin = float(event["ts"])
    end = begin + float(event.get("dur", 0))
    thread = (event.get("pid"), event.get("tid"))
    return _Span(begin, end, thread, sys.intern(event["name"]), component)


def _outermost(spans: Iterable[_Span]) -> Iterator[_Span]:
    """Yield the spans that lie in no other span of their thread."""
    until: dict[tuple[Any, Any], float] = {}
    for span in sorted(spans, key=lambda one: (one.begin, -one.end)):
        if span.begin >= until.get(span.thread, float("-inf")):
            until[span.thread] = span.end
            yield span


def _times(spans: Sequence[_Span]) -> dict[str, Any]:
    if not spans:
        empty = dict.fromkeys(
            ("window_ms", "busy_ms", "busy_share", "gap_ms", "gaps", "gap_longest_ms", "sum_ms")
        )
        return {**empty, "rows": []}
    gaps = list(_gaps(spans))
    window = max(span.end for span in spans) - min(span.begin for span in spans)
    busy = window - sum(gaps)
    total = sum(span.end - span.begin for span in spans)
    return {
        "window_ms": window / 1e3,
        "busy_ms": busy / 1e3,
        "busy_share": busy / window if window else None,
        "gap_ms": sum(gaps) / 1e3,
        "gaps": len(gaps),
        "gap_longest_ms": max(gaps, default=0.0) / 1e3,
        "sum_ms": total / 1e3,
        "rows": list(_rows(spans, total)),
    }


def _gaps(spans: Sequence[_Span]) -> Iterator[float]:
    """Yield the times between spans in which no stream ran anything."""
    ordered = sorted(spans, key=lambda one: one.begin)
    until = ordered[0].end
    for span in ordered:
        if span.begin > until:
            yield span.begin - until
        until = max(until, span.end)


def _rows(spans: Sequence[_Span], total: float) -> Iterator[dict[str, Any]]:
    """Yield a row for each component that ran, the largest first."""
    times: dict[str, Counter[str]] = {component: Counter() for component in COMPONENTS}
    counts: dict[str, Counter[str]] = {component: Counter() for component in COMPONENTS}
    for span in spans:
        times[span.component][span.name] += span.end - span.begin  # type: ignore[assignment]
        counts[span.component][span.name] += 1
    for component in sorted(COMPONENTS, key=lambda one: -sum(times[one].values())):
        if not counts[component]:
            continue
        mine = sum(times[component].values())
        ranked = sorted(times[component].items(), key=lambda one: (-one[1], one[0]))
        yield {
            "component": component,
            "ms": mine / 1e3,
            "share": mine / total if total else None,
            "count": sum(counts[component].values()),
            "top": [
                {"name": name, "ms": time / 1e3, "count": counts[component][name]}
                for name, time in ranked[:_TOP]
            ],
        }
