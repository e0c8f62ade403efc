"""A campaign on the stand-in in a folder of its own, and the processes that belong to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from chaos.scenario import Scenario
from lab import HEAD, PROJECT, Lab, hears_hangups

FAULT_DEADLINE_S = 180.0
RUN_DEADLINE_S = 300.0

CAMPAIGN = """
design: full
axes: {{parallelism: [tp1, tp2]}}
launches: {launches}
warmup: {{max_waves: {waves}}}
server: {{port: {port}}}
node: {{min_free_disk_mib: 4}}
load:
  concurrency: [1, 2]
  input_len: 8
  output_len: 16
  requests: {{min: 8, per_concurrency: 2}}
  client: {{engine: client}}
"""

REAL_DEADLINES = {
    "start_s": 180,
    "stall_s": 120,
    "point_s": 60,
    "warmup_s": 60,
    "stop_s": 10,
    "idle_s": 60,
}

# Scaled down, so that a run waits seconds where a campaign would wait minutes.
DEADLINES = "{start_s: 8, stall_s: 4, point_s: 8, warmup_s: 8, stop_s: 1, idle_s: 15}"


@dataclass
class World:
    """One campaign under attack."""

    lab: Lab
    scenario: Scenario
    log: list[str] = field(default_factory=list)
    decoy: subprocess.Popen[bytes] | None = None
    thief: subprocess.Popen[bytes] | None = None
    port: int | str = "auto"

    def say(self, text: str) -> None:
        self.log.append(f"{time.strftime('%H:%M:%S')} {text}")

    @property
    def cells(self) -> tuple[str, ...]:
        return ("tp1", "tp2") if self.scenario.engine == "standin" else ("tp1",)

    def _write_real(self) -> None:
        """The default campaign's engine and model, one cell, two short load points."""
        data = yaml.safe_load((PROJECT / "config/config.yaml").read_text())
        data |= {
            "campaign": "small",
            "axes": {"parallelism": ["tp1"]},
            "warmup": {"max_waves": 0},
            "deadlines": REAL_DEADLINES,
        }
        # without it the engine takes most of the machine's memory for its KV pool
        data["engines"]["sglang-cpu"]["flags"]["mem_fraction_static"] = 0.02
        data["load"] |= {
            "concurrency": [1, 2],
            "input_len": 8,
            "output_len": 16,
            "requests": {"min": 8, "per_concurrency": 2},
        }
        (self.lab.folder / "campaign.yaml").write_text(yaml.safe_dump(data))

    def write_campaign(self) -> None:
        one = self.scenario
        if one.engine != "standin":
            self._write_real()
            return
        head = HEAD.format(python=sys.executable)
        flags = ["standin_ready_ms: 150", "standin_tpot_ms: 20", "standin_life_s: 240"]
        faults = ["escaped_child:600"] if one.escaped else []
        if one.kind == "server":
            faults.append(f"{one.server_fault}?tp_size=2")
        if faults:
            flags.append(f'standin_fault: "{faults[0]}"')
        lines = [line for line in head.splitlines() if not line.startswith(("design", "deadlines"))]
        text = "\n".join(lines).replace("standin_ready_ms: 20", ", ".join(flags))
        text += f"\ndeadlines: {DEADLINES}" + CAMPAIGN.format(
            launches=one.launches, waves=one.waves, port=self.port
        )
        (self.lab.folder / "campaign.yaml").write_text(text)

    # --- processes ------------------------------------------------------------------------

    def processes(self) -> dict[int, str]:
        """Return the command lines of all living processes that belong to this world."""
        mark = f"SGMATRIX_LEASES={self.lab.folder}/".encode()
        mine = {os.getpid(), *(p.pid for p in (self.decoy, self.thief) if p)}
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal() or int(entry.name) in mine:
                continue
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes():
                    if (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX":
                        continue
                    text = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(entry.name)] = text.decode(errors="replace")
        return found

    def servers(self) -> list[int]:
        """Return the servers that a warden keeps now; more than one at a time is a fault."""
        mine = self.processes()
        wardens = {pid for pid, command in mine.items() if "sgmatrix.node.warden" in command}
        return [
            pid
            for pid, command in mine.items()
            if "sglang.launch_server" in command
            and parent_of(pid) in wardens
            and leads_session(pid)
            and not is_escaped(pid)
        ]

    def find(self, target: str, snakemake: int) -> int | None:
        """Return the process that a fault is for; None while there is none."""
        if target == "snakemake":
            return snakemake
        for pid, command in self.processes().items():
            if target == "job" and "/.snakemake/scripts/" in command and "python" in command:
                return pid
            if target == "warden" and "sgmatrix.node.warden" in command:
                return pid
            if target == "client" and "rust_client.py" in command:
                return pid
            if target == "worker" and command.startswith("sglang::scheduler"):
                return pid
            if target in ("server", "escaped") and "sglang.launch_server" in command:
                with contextlib.suppress(OSError):
                    leader = os.getsid(pid) == pid
                    parent = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
                    child_of_server = "sglang.launch_server" in self.processes().get(parent, "")
                    if target == "server" and leader and not child_of_server:
                        return pid
                    if target == "escaped" and leader and child_of_server:
                        return pid
        return None

    # --- running --------------------------------------------------------------------------

    def start(self) -> subprocess.Popen[str]:
        out = (self.lab.folder / f"out-{len(self.log)}.txt").open("w")
        with out:
            return subprocess.Popen(
                [*self.command()],
                cwd=PROJECT,
                env=self.lab.environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
                process_group=0,
                preexec_fn=hears_hangups,  # noqa: PLW1509 - before anything else runs
            )

    def command(self, *arguments: str) -> list[str]:
        config = ("--configfile", str(self.lab.folder / "campaign.yaml"))
        command = self.lab.command(*arguments, *config)
        profile = PROJECT / "profiles" / self.scenario.profile
        return [
            str(profile) if word == str(PROJECT / "profiles/default") else word for word in command
        ]

    def await_phase(self, process: subprocess.Popen[str]) -> bool:
        """Wait for the moment of the fault; False when the campaign ended before it."""
        one = self.scenario
        end = time.monotonic() + FAULT_DEADLINE_S
        while time.monotonic() < end:
            seen = [e for e in self.lab.events() if e["event"] == one.phase]
            if one.phase == "begin" or len(seen) >= one.which:
                break
            if process.poll() is not None:
                return False
            time.sleep(0.01)
        time.sleep(one.delay_s)  # the fault's own moment, not a synchronisation
        return process.poll() is None

    def finish(self, process: subprocess.Popen[str]) -> int:
        """Wait for the campaign's end."""
        return process.wait(RUN_DEADLINE_S)

    def kill_everything(self) -> None:
        """Leave nothing behind, whatever went wrong."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in (self.decoy, self.thief):
            if process is not None:
                process.kill()
                process.wait()


def parent_of(pid: int) -> int:
    """Return the parent of a process, 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return 0


def leads_session(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except OSError:
        return False


def is_escaped(pid: int) -> bool:
    """Tell whether a process is the child that ignores SIGTERM, which its warden adopts."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored.split()[1], 16) & (1 << (signal.SIGTERM - 1)))


def stored(root: Path) -> dict[str, str]:
    """Return {path: text} of every finished point in a campaign's history."""
    points = {}
    for path in root.glob("history/*/launch-*/*/points/*.json"):
        text = path.read_text()
        if json.loads(text)["status"] == "ok":
            points[str(path.relative_to(root))] = text
    return points
