"""The texts of one launch: its levers, its note in Markdown, and the files that go with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from sgmatrix.core.reasons import REASONS
from sgmatrix.core.redact import redact, redact_prose
from sgmatrix.dataset.figures import Row, measured
from sgmatrix.dataset.history import Attempt
from sgmatrix.present.clean import clean_tail
from sgmatrix.present.outcome import Outcome, rerun_command
from sgmatrix.present.points import csv_text

LOG_LINES = 200
PARAM_CHARS = 300
NOTE_ROWS = 40
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same values, ten times as fast


def short(value: Any) -> str:
    """Return a value as MLflow can show it in a column; `cell.yaml` has the whole of it."""
    text = redact_prose(str(value).replace("\0", ""))
    return text if len(text) <= PARAM_CHARS else f"{text[: PARAM_CHARS - 1]}…"


def params(spec: Mapping[str, Any], version: str | None) -> dict[str, str]:
    cell = spec["cell"]
    points = spec["points"]

    def each(name: str) -> str:
        return ",".join(dict.fromkeys(str(point[name]) for point in points))

    found = {
        "engine": cell["engine"],
        "engine_version": version,
        "model": spec["model"]["name"],
        "gpus": cell["gpus"],
        "dataset": each("dataset"),
        "input_len": each("input_len"),
        "output_len": each("output_len"),
        "launch": spec["launch"],
        "seed": cell["reproduce"].get("load", {}).get("seed"),
        "client": spec["client"]["id"],
        "harness": spec["harness"],
        **cell["axes_text"],
    }
    return {name: short(value) for name, value in found.items() if value not in (None, "")}


def hardware(node: Mapping[str, Any]) -> str:
    """Return what a launch ran on, e.g. `8 x NVIDIA H200`; empty where no record tells."""
    names = [str(gpu.get("name")) for gpu in node.get("gpus") or []]
    kinds = [f"{names.count(name)} x {name}" for name in dict.fromkeys(names)]
    return ", ".join(kinds) or str(node.get("processor") or "")


def note(spec: Mapping[str, Any], end: Outcome, points: Sequence[Row]) -> str:
    """Return the description of a run in Markdown; foreign text stands in a code block."""
    cell = spec["cell"]
    axes = ", ".join(
        f"{axis} `{text}`" for axis, text in cell["axes_text"].items() if text is not None
    )
    lines = [f"**{cell['id']}**, launch {spec['launch']}, attempt {spec['attempt']}: {axes}", ""]
    if end.reason is None:
        lines += ["Outcome: ok", ""]
    else:
        known = REASONS.get(end.reason)
        lines += [f"Outcome: **{end.reason}**" + (f" ({known.help})" if known else ""), ""]
        where = f"server.log, line {end.line}: " if end.line else ""
        lines += [
            f"    {' '.join(text.split())[:600]}"
            for text in (end.what, end.seen and where + end.seen)
            if text
        ]
        lines += [""]
    return "\n".join(
        [
            *lines,
            *_table(points),
            "Run it again:",
            "",
            f"    {rerun_command(spec['campaign'], cell['id'])}",
            "",
        ]
    )


def _table(points: Sequence[Row]) -> list[str]:
    """Return the points as a table; blank where nothing was measured."""
    columns = (
        ("output_tok_s", "tok/s", ",.1f"),
        ("practical_ratio", "of ceiling", ".1%"),
        ("ttft_ms_p50", "TTFT p50 ms", ".1f"),
        ("tpot_ms_p50", "TPOT p50 ms", ".2f"),
    )
    heads = ["load", *(head for _, head, _ in columns), "status", "flags"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for row in points[:NOTE_ROWS]:
        numbers = [
            "" if (value := measured(row, name)) is None else format(value, form)
            for name, _, form in columns
        ]
        flags = (row.get("validity") or "").replace("valid", "") or ""
        fields = [str(row["load_id"]), *numbers, str(row.get("reason") or row["status"]), flags]
        lines.append(f"| {' | '.join(fields)} |")
    if len(points) > NOTE_ROWS:
        lines += ["", f"{len(points) - NOTE_ROWS} more are in points.csv."]
    return [*lines, ""]


def files(attempt: Attempt, points: Sequence[Row], columns: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    cell_yaml, log = attempt.folder / "cell.yaml", attempt.folder / "server.log"
    if cell_yaml.is_file():
        found["cell.yaml"] = _public_yaml(cell_yaml.read_text(encoding="utf-8"))
    asked = attempt.spec["cell"]
    # a server that never was ready has no command line with a port in its record
    argv = (attempt.final or {}).get("argv") or [asked["python"], *asked["arguments"]]
    found["argv.json"] = json.dumps(redact(argv), indent=1) + "\n"
    if log.is_file():
        found["server.log"] = clean_tail(_tail(log), LOG_LINES)
    there = {name for row in points for name, value in row.items() if value is not None}
    found["points.csv"] = csv_text([name for name in columns if name in there], points)
    return found


def _public_yaml(text: str) -> str:
    """Return a campaign file with its secrets masked; as it is where it has none."""
    data = yaml.load(text, Loader=_LOADER)  # noqa: S506 - a safe one
    masked = redact(data)
    return text if masked == data else yaml.safe_dump(masked, sort_keys=False, allow_unicode=True)


def _tail(path: Path, limit: int = 1 << 20) -> bytes:
    """Return the end of a file; a server that runs for a day logs gigabytes."""
    with path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - limit))
        return file.read()
