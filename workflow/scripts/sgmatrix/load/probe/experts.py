"""Distinct experts per decode step, layer and batch size, from SGLang's own recorder."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sgmatrix.load.offer import point_offer
from sgmatrix.load.probe.asked import ask_engine
from sgmatrix.load.step import Step, failed
from sgmatrix.load.warmup import run_wave
from sgmatrix.node.server import Server
from sgmatrix.node.wire import request

_DUMP_S = 120.0


def record_batches(
    step: Step, server: Server, spec: Mapping[str, Any]
) -> tuple[dict[int, Path], dict[str, Any] | None]:
    """Have the recorder watch a wave of each batch size.

    Returns:
        The dump of each batch size; and what failed, None where nothing did.

    Raises:
        SgmatrixError: when the environment ended the server or the client.
    """
    dumps: dict[int, Path] = {}
    for point in spec["points"]:
        batch = point["concurrency"]
        _tell(server, "start")
        folder = step.folder / "waves" / point["load_id"]
        wave = run_wave(step, server, point_offer(point, {}), folder, spec["deadlines"]["point_s"])
        _tell(server, "stop")
        if "status" in wave:
            return dumps, wave
        before = set(_dumped(step.folder))
        _tell(server, "dump")
        new = [path for path in _dumped(step.folder) if path not in before]
        if len(new) != 1:
            return dumps, failed(
                "plugin_inactive", f"the expert recorder dumped {len(new)} files at batch {batch}"
            )
        dumps[batch] = new[0]
    return dumps, None


def _dumped(folder: Path) -> list[Path]:
    return sorted(folder.glob("expert_distribution_recorder_*.pt"))


def _tell(server: Server, what: str) -> None:
    path = f"/{what}_expert_distribution_record"
    status, body = request(server.port, "POST", path, {}, timeout_s=_DUMP_S)
    if status != 200:
        raise OSError(f"{path} answered {status}: {body[:200].decode(errors='replace')}")


def step_rows(
    dumps: Mapping[int, Path], cell: Mapping[str, Any], top_k: int
) -> list[dict[str, Any]]:
    """Return one row per batch size, full decode step and layer.

    A step is one of the batch size when it routed exactly so many tokens; a prefill, and the
    steps in which some requests had ended, are left out.

    Args:
        dumps: batch size to the recorder's file.
        cell: the cell, of `plan.json`.
        top_k: experts per token, of the model.

    Raises:
        SgmatrixError: `engine_missing` when the engine's interpreter cannot read them.
    """
    ranks = (cell["flags"].get("tp_size") or 1) * (cell["flags"].get("dp_size") or 1)
    read: list[list[list[int]]] = ask_engine(cell, "counts.py", [top_k, ranks, *dumps.values()], {})
    return [
        row
        for batch, entries in zip(dumps, read, strict=True)
        for row in _batch_rows(batch, entries, top_k)
    ]


def _batch_rows(
    batch: int, entries: Sequence[Sequence[int]], top_k: int
) -> Iterable[dict[str, Any]]:
    seen: dict[int, itertools.count[int]] = {}
    for layer, tokens, activated, experts in entries:
        if tokens == batch:
            yield {
                "batch": batch,
                "step": next(seen.setdefault(layer, itertools.count())),
                "layer": layer,
                "tokens": tokens,
                "activated": activated,
                "experts": experts,
                "top_k": top_k,
            }


def batch_means(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float | int]]:
    """Return, by batch size, the mean of the activated experts over steps and layers.

    `activated_sd` is the standard deviation over the steps of a layer, root mean square over
    the layers: near 0 where every step routed the same tokens.
    """
    batches: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        batches.setdefault(row["batch"], []).append(row)
    return {
        str(batch): {
            "activated_mean": statistics.fmean(row["activated"] for row in mine),
            "activated_sd": _sd_over_steps(mine),
            "steps": len({row["step"] for row in mine}),
            "layers": len({row["layer"] for row in mine}),
            "experts": mine[0]["experts"],
            "top_k": mine[0]["top_k"],
        }
        for batch, mine in sorted(batches.items())
    }


def _sd_over_steps(rows: Iterable[Mapping[str, Any]]) -> float:
    layers: dict[int, list[int]] = {}
    for row in rows:
        layers.setdefault(row["layer"], []).append(row["activated"])
    return math.sqrt(statistics.fmean(statistics.pvariance(one) for one in layers.values()))
