"""Histories whose complete attempts hold everything that a real one does.

    told = Finished(tmp_path, campaign(axes={"parallelism": ["tp1", "tp2"]}))
    told.measured("tp1", rates={1: 64, 2: 120})        # output tok/s by concurrency
    told.died("tp2", root="RuntimeError: x", at=2)     # the server died at concurrency 2
    told.rejected("tp4", root="error: unrecognized")   # it never was ready, all is skipped
    told.powered(told.measured("tp8", ...), {0: 400, 1: 380})   # watts by GPU
    told.collect()                                     # datasets/points.parquet

Times are fixed, so that a test may state them: a launch is asked for at 10:00:00, is ready
after 2.5 s, and is finished at 10:01:00.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from builders import STARTED_AT, History, client_line
from sgmatrix.core.clock import parse_utc
from sgmatrix.core.files import read_json, write_json, write_text
from sgmatrix.dataset.collect import Tables, collect

FINISHED_AT = "2026-11-20T10:01:00.000000+00:00"
_BEGAN_S = parse_utc(STARTED_AT).timestamp()
READY = {"asked": _BEGAN_S, "started": _BEGAN_S + 1.0, "ready": _BEGAN_S + 3.5}
ENDED = {"stopping": _BEGAN_S + 50.0, "closed": _BEGAN_S + 50.25}


class Finished(History):
    """The files of a campaign after its launches."""

    @property
    def points(self) -> Path:
        return self.layout.datasets / "points.parquet"

    def collect(self) -> Path:
        """Make the tables; return `points`."""
        collect(self.layout, Tables.of(self.layout))
        return self.points

    def measured(
        self,
        cell: str,
        launch: str = "1",
        *,
        rates: dict[int, float],
        log: str = "",
        validity: dict[int, str] | None = None,
        itl_s: float = 0.002,
    ) -> Path:
        """Write a launch that went well, with that throughput at each concurrency."""
        folder = self.attempt(cell, launch, lines=self._lines(cell, launch, rates, itl_s))
        for concurrency, flags in (validity or {}).items():
            self.change_point(folder, concurrency, validity=flags)
        self._finish(folder, reason=None, detail=None, closed={}, log=log)
        return folder

    def died(
        self, cell: str, launch: str = "1", *, root: str, rates: dict[int, float], log: str = ""
    ) -> Path:
        """Write a launch whose server died at its last point: failed there, measured before."""
        lines = self._lines(cell, launch, rates, 0.002)
        folder = self.attempt(cell, launch, reason="server_crash", lines=lines)
        detail = "the engine exited with code -9 after 5.4 s, while it served"
        closed = {"reason": "server_crash", "root_line": root, "root_line_number": 100}
        closed["advice"] = "try another attention back end"
        self._finish(folder, reason="server_crash", detail=detail, closed=closed, log=log)
        return folder

    def rejected(self, cell: str, launch: str = "1", *, root: str, log: str = "") -> Path:
        """Write a launch whose server refused its arguments: no point was offered."""
        folder = self.attempt(cell, launch)
        for point in self._planned(cell, launch):
            self.change_point(folder, point["concurrency"], skipped=True)
        detail = "the engine exited with code 2 after 0.1 s, before it was ready"
        closed = {"reason": "config_rejected", "root_line": root, "root_line_number": 58}
        self._finish(
            folder, reason="config_rejected", detail=detail, closed=closed, log=log, ready=False
        )
        return folder

    def never_warm(self, cell: str, launch: str = "1", *, detail: str) -> Path:
        """Write a launch whose warm-up failed: no point was offered, the server ended well."""
        folder = self.measured(cell, launch, rates={})
        for point in self._planned(cell, launch):
            self.change_point(folder, point["concurrency"], skipped=True, reason="client_crash")
        final = read_json(folder / "teardown.json")
        failed = {"status": "failed", "reason": "client_crash", "detail": detail}
        write_json(folder / "teardown.json", {**final, **failed, "warmup": failed})
        return folder

    def powered(self, folder: Path, watts: dict[int, float]) -> None:
        """Give a launch GPUs of that power: their telemetry, and what its points say of it."""
        samples = [
            {
                "t": _BEGAN_S + at,
                "interval_s": 2.0,
                "gpus": {str(gpu): {"power_w": power} for gpu, power in watts.items()},
            }
            for at in range(2, 50, 2)
        ]
        lines = [json.dumps(sample) for sample in samples]
        write_text(folder / "telemetry.jsonl", "\n".join(lines) + "\n")
        total = sum(watts.values())
        for file in (folder / "points").glob("*.json"):
            record = read_json(file)
            if record["status"] == "ok":
                rate = record["output_tok_s"]
                power = {"power_w_mean": total, "energy_j_per_output_tok": total / rate}
                write_json(file, {**record, **power, "output_tok_s_per_gpu": rate / len(watts)})

    def change_point(
        self, folder: Path, concurrency: int, *, skipped: bool = False, **values: Any
    ) -> None:
        """Change the record of one point; `skipped` takes out what only an offered one has."""
        (file,) = (folder / "points").glob(f"c{concurrency:04d}-*.json")
        record = read_json(file)
        if skipped:
            measured = {name for name in record if name.endswith(("_s", "_mean")) or "_ms_" in name}
            gone = measured | {"started_at", "completed", "failed", "validity", "asked"}
            record = {name: value for name, value in record.items() if name not in gone}
            record |= {"status": "skipped", "reason": "config_rejected", "detail": None}
        write_json(file, {**record, **values})

    def _planned(self, cell: str, launch: str) -> list[dict[str, Any]]:
        return next(
            one["points"]
            for one in self.plan["launches"]
            if (one["cell"], one["launch"]) == (cell, launch)
        )

    def _lines(
        self, cell: str, launch: str, rates: dict[int, float], itl_s: float
    ) -> dict[str, dict[str, Any]]:
        lines = {}
        for point in self._planned(cell, launch):
            rate = rates.get(point["concurrency"])
            if rate is not None:
                tokens = point["requests"] * point["output_len"]
                lines[point["load_id"]] = client_line(
                    point["requests"],
                    tokens=point["output_len"],
                    itl_s=itl_s,
                    duration_s=tokens / rate,
                )
        return lines

    def _finish(
        self,
        folder: Path,
        *,
        reason: str | None,
        detail: str | None,
        closed: dict[str, Any],
        log: str,
        ready: bool = True,
    ) -> None:
        spec = read_json(folder / "spec.json")
        times = READY if ready else {name: READY[name] for name in ("asked", "started")}
        final = {
            **read_json(folder / "teardown.json"),
            "status": "ok" if reason is None else "failed",
            "reason": reason,
            "detail": detail,
            "argv": ["python", "-m", "sglang.launch_server", "--port", "3"] if ready else None,
            "server_times": times,
            "warmup": {"status": "ok", "reason": None, "detail": None, "took_s": 4.0}
            if ready
            else {"status": "skipped", "reason": reason, "detail": None},
            "closed": {
                "reason": None,
                "root_line": None,
                "root_line_number": None,
                "times": {**times, **ENDED},
                **closed,
            },
            "finished_at": FINISHED_AT,
        }
        write_json(folder / "teardown.json", final)
        head = "# Reproduces this cell alone: snakemake --configfile <this file>\n"
        write_text(folder / "cell.yaml", head + yaml.safe_dump(spec["cell"]["reproduce"]))
        write_text(folder / "server.log", log or "The server is fired up and ready to roll!\n")
