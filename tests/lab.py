"""Real `snakemake` on small campaigns, with the stand-in server and SGLang's own client."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

PROJECT = Path(__file__).resolve().parents[1]

HEAD = """
campaign: small
study: tests
engine: standin
engines:
  standin:
    python: {python}
    device: cpu
    expected_start_s: 0.2
    env: {{PYTHONPATH: "{{project}}/tests/standin"}}
    flags: {{standin_ready_ms: 20}}
  client: {{python: .engines/sglang-cpu/bin/python}}
model: {{recipe: tiny-qwen3-moe}}
design: one_at_a_time
deadlines: {{start_s: 20, stall_s: 20, point_s: 60, warmup_s: 60, stop_s: 5, idle_s: 60}}
"""

LOAD = """
telemetry: {{hz: {hz}}}
warmup: {{max_waves: {waves}}}
load:
  concurrency: {concurrency}
  input_len: 8
  output_len: {output_len}
  requests: {{min: 2, per_concurrency: 2}}
  client: {{engine: client}}
"""


def hears_hangups() -> None:
    """Take SIGHUP as a shell's child does, also where the tests run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@dataclass
class Lab:
    """An empty folder in which a campaign is run."""

    folder: Path
    path_first: Path | None = None
    """Folder of programs that come before the machine's own."""
    leases: Path | None = None
    """Lock folder that is shared with other labs, as on one node."""

    @property
    def root(self) -> Path:
        return self.folder / "results" / "small"

    def campaign(
        self,
        axes: str,
        *,
        waves: int = 1,
        concurrency: str = "[1, 2]",
        output_len: int = 4,
        hz: float = 0,
        extra: str = "",
    ) -> Path:
        """Write the campaign file; `axes` is the YAML below `axes:`."""
        path = self.folder / "campaign.yaml"
        load = LOAD.format(waves=waves, concurrency=concurrency, output_len=output_len, hz=hz)
        path.write_text(f"{HEAD.format(python=sys.executable)}axes: {axes}\n{load}{extra}")
        return path

    def command(self, *arguments: str | Path) -> list[str]:
        return [
            str(Path(sys.executable).with_name("snakemake")),
            "--snakefile",
            str(PROJECT / "Snakefile"),
            "--directory",
            str(self.folder),
            "--workflow-profile",
            str(PROJECT / "profiles/default"),
            *map(str, arguments),
        ]

    def environment(self) -> dict[str, str]:
        # servers of other tests on this machine must not make these wait
        leases = {"SGMATRIX_LEASES": str(self.leases or self.folder / "leases")}
        path = f"{self.path_first}:{os.environ['PATH']}" if self.path_first else os.environ["PATH"]
        return {**os.environ, **leases, "PATH": path}

    def snakemake(
        self, *arguments: str | Path, config: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run Snakemake to its end; stdout and stderr together in `.stdout`."""
        config = config or self.folder / "campaign.yaml"
        return subprocess.run(
            self.command(*arguments, "--configfile", config),
            cwd=PROJECT,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )

    def start(self) -> subprocess.Popen[str]:
        """Start Snakemake in a process group of its own, as a shell does."""
        with (self.folder / "out.txt").open("w") as out:
            return subprocess.Popen(
                self.command("--configfile", self.folder / "campaign.yaml"),
                cwd=PROJECT,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
                process_group=0,
                preexec_fn=hears_hangups,  # noqa: PLW1509 - before anything else runs
            )

    def events(self) -> list[dict[str, Any]]:
        path = self.root / "logs/events.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def await_event(self, name: str, load: str = "") -> None:
        """Wait until a job has appended that event."""
        wait_for(
            lambda: any(
                event["event"] == name and event.get("load", "").startswith(load)
                for event in self.events()
            ),
            f"event {name} {load}",
        )

    def points(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = pq.read_table(
            self.root / "datasets/points.parquet"
        ).to_pylist()
        return rows

    def attempts(self) -> dict[str, list[str]]:
        """Return {cell: attempts in the history} of launch 1."""
        history = self.root / "history"
        return {
            cell.name: sorted(entry.name for entry in (cell / "launch-1").iterdir())
            for cell in sorted(history.iterdir())
        }

    def processes(self) -> list[str]:
        """Return the command lines of all processes that have to do with this folder."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != os.getpid():
                try:
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    environment = (entry / "environ").read_bytes().decode(errors="replace")
                except OSError:
                    continue
                ours = f"SGMATRIX_LEASES={self.folder}/" in environment
                if ours or str(self.folder) in command:
                    found.append(command)
        return found


def wait_for(condition: Callable[[], bool], what: str, deadline_s: float = 60) -> None:
    """Poll until a condition holds; fail loudly at the deadline."""
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"did not happen within {deadline_s:g} s: {what}")
        time.sleep(0.02)
