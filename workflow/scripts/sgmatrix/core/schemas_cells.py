"""Arrow schema of `cells`: one row per server configuration, for joining and plotting."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from sgmatrix.core.schemas import axis_fields, field, nullable

CELLS_VERSION = 1

_TEXT, _I32, _F64, _BOOL = pa.string(), pa.int32(), pa.float64(), pa.bool_()
_TIME = pa.timestamp("us", tz="UTC")

_best = nullable("no trusted load point of the closed loop")
_told = nullable("no server told it")
_at_best = nullable("no best load point, or not measured or barred there")
_single = nullable("concurrency 1 was not measured, or is barred")
_phase = nullable("no launch came through it")
_run = nullable("not yet run")

_CELL_FIELDS = [
    field("campaign", _TEXT, "name of the campaign", null=False),
    field("study", _TEXT, "what campaigns belong to", null=False),
    field("cell", _TEXT, "cell id", null=False),
    field("cell_key", _TEXT, "sha256 of what makes the server", null=False),
    field("planned", _BOOL, "in the plan; false: in the history alone", null=False),
    field("status", _TEXT, "ok | failed | not_run", null=False),
    field("reason", _TEXT, "reason class of the first failure, or interrupted", null="neither"),
    field("detail", _TEXT, "root line or sentence of that failure", null="nothing to say"),
    field("model", _TEXT, "model of the campaign", null="not told by an old record"),
    field("gpus", _I32, "GPUs of the cell; 0 on the CPU engine", null="not told by an old record"),
    field("engine", _TEXT, "named installation", null=False),
    _told("engine_version", _TEXT, "version that the newest current server reported"),
    _run("harness", _I32, "harness version of the newest current attempt"),
    _run("asked_at", _TIME, "when the first attempt was asked for"),
    field("finished_at", _TIME, "end of the newest current attempt", null="none is complete"),
    field("launches_planned", _I32, "launches in the plan that were needed", null=False),
    field("launches_ok", _I32, "launches of which all points are ok", null=False),
    field("launches_failed", _I32, "launches with a failed or skipped point or step", null=False),
    field("attempts", _I32, "attempts in the history, superseded ones too", null=False),
    field("points_planned", _I32, "load points over the launches of the plan", null=False),
    field("points_ok", _I32, "of current attempts, with status ok", null=False),
    field("points_failed", _I32, "of current attempts, failed or skipped", null=False),
    field("points_flagged", _I32, "ok, with a validity flag", null=False),
    _best("best_output_tok_s", _F64, "highest throughput, mean over launches, not barred"),
    _best("best_output_tok_s_low", _F64, "least of its launches"),
    _best("best_output_tok_s_high", _F64, "greatest of its launches"),
    _best("best_launches", _I32, "launches that it is the mean of"),
    _best("best_load_id", _TEXT, "load point of the best"),
    _best("best_concurrency", _I32, "requests in flight there, asked"),
    _best("best_dataset", _TEXT, "kind of prompts there"),
    _best("best_input_len", _I32, "prompt tokens per request there, asked"),
    _best("best_output_len", _I32, "output tokens per request there, asked"),
    field("best_output_tok_s_per_gpu", _F64, "the best / GPUs", null="the CPU engine, or no best"),
    _at_best("best_tpot_ms_mean", _F64, "mean TPOT at the best"),
    _at_best("best_ttft_ms_mean", _F64, "mean TTFT at the best"),
    _at_best("best_power_w_mean", _F64, "GPU power at the best, all GPUs of the cell"),
    _at_best("best_energy_j_per_output_tok", _F64, "GPU energy per output token at the best"),
    _at_best("best_hard_ratio", _F64, "the best / its hard ceiling"),
    _at_best("best_practical_ratio", _F64, "the best / its practical ceiling; may be above 1"),
    _single("single_tpot_ms_mean", _F64, "mean TPOT of a single stream, mean over launches"),
    _single("single_output_tok_s", _F64, "throughput of a single stream, mean over launches"),
    _phase("start_s", _F64, "server start to ready, mean over launches"),
    _phase("warmup_s", _F64, "warm-up, mean over launches"),
    _phase("bench_s", _F64, "load client, all points of a launch, mean over launches"),
    _phase("teardown_s", _F64, "stop request to closed, mean over launches"),
    field("gpu_memory_used_mib_max", _F64, "most in use on one GPU", null="no GPU, or not read"),
    field("argv", _TEXT, "server command line, secrets masked", null="no server was started"),
]


def cells_schema(axes: Iterable[str]) -> pa.Schema:
    """Return the schema of `cells`, with one text column per axis, sorted by name."""
    return pa.schema([*_CELL_FIELDS, *axis_fields(axes)])
