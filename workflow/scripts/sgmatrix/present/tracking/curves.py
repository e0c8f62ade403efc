"""Throughput and TPOT of one launch over concurrency, as a PNG: same numbers, same bytes.

MLflow shows pictures of a run, and has no view of Parquet.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence

from sgmatrix.present.tracking.metrics import Value

_PANELS = (("output_tok_s", "output throughput (tok/s)"), ("tpot_ms_p50", "TPOT p50 (ms)"))
_DRAWING = threading.Lock()  # matplotlib is no library for several threads


def curves_png(metrics: Sequence[Value]) -> bytes | None:
    """Return the picture; None where no point was measured."""
    series: dict[str, dict[str, list[tuple[int, float]]]] = {name: {} for name, _ in _PANELS}
    for one in metrics:
        section, _, name = one.key.rpartition("/")
        if section.startswith("by_concurrency") and name in series:
            label = section.partition("/")[2]
            series[name].setdefault(label, []).append((one.step, one.value))
    if not any(series.values()):
        return None
    with _DRAWING:
        return _drawn(series)


def _drawn(series: dict[str, dict[str, list[tuple[int, float]]]]) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3), dpi=80)
    FigureCanvasAgg(figure)
    figure.subplots_adjust(left=0.09, right=0.98, bottom=0.16, top=0.96, wspace=0.25)
    for place, (name, label) in enumerate(_PANELS, start=1):
        axes = figure.add_subplot(1, 2, place)
        steps = sorted({step for marks in series[name].values() for step, _ in marks})
        for legend, marks in sorted(series[name].items()):
            xs, ys = zip(*sorted(marks), strict=True)
            axes.plot(xs, ys, marker="o", markersize=4, label=legend or None)
        if steps:
            axes.set_xscale("log", base=2)
            axes.set_xticks(steps, [str(step) for step in steps])
            axes.minorticks_off()
            axes.set_ylim(bottom=0)
        if len(series[name]) > 1:
            axes.legend(fontsize=7)
        axes.set_xlabel("concurrency")
        axes.set_ylabel(label)
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()
