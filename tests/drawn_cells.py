"""Cells as the figures take them, of given throughputs."""

from typing import Any

from sgmatrix.present.cells import CellView, cell_view


def view(cell: str, rates: dict[int, float], **values: Any) -> CellView:
    """Return a cell with that output throughput by concurrency; TPOT is 1000 c / throughput."""
    return cell_view(cell, [point(cell, at, rate, **values) for at, rate in rates.items()], [])


def point(cell: str, concurrency: int, rate: float | None, **values: Any) -> dict[str, Any]:
    """Return a row of `points`."""
    return {
        "cell": cell,
        "launch": "1",
        "attempt": 1,
        "detail": None,
        "current": True,
        "status": "ok",
        "reason": None,
        "validity": "valid",
        "dataset": "random-ids",
        "input_len": 16,
        "output_len": 4,
        "concurrency": concurrency,
        "request_rate": None,
        "output_tok_s": rate,
        "tpot_ms_mean": None if rate is None else 1000 * concurrency / rate,
        **values,
    }
