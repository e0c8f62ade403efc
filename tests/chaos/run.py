"""One run: a campaign, a fault, the checks, the campaign again, the checks again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from chaos import checks, faults
from chaos.scenario import Scenario
from chaos.world import World, stored
from lab import PROJECT, Lab

_DISK_MIB = 48
_AGAIN = 4
"""How often `snakemake` may be needed: a thief or a full disk may stop it more than once."""


@dataclass
class Outcome:
    """How a run went."""

    scenario: Scenario
    made: bool
    """Whether the fault could be made: its moment may never come."""
    violations: list[str]
    again: int
    """Invocations that were needed after the fault."""
    took_s: float
    log: list[str]


def run_scenario(scenario: Scenario, base: Path | None = None) -> Outcome:
    """Run one scenario in a folder of its own, which is kept when something is violated."""
    folder = Path(tempfile.mkdtemp(prefix=f"sgmatrix-chaos-{scenario.seed}-", dir=base))
    mounted = scenario.kind == "disk" and _mount(folder)
    world = World(Lab(folder), scenario)
    start = time.monotonic()
    violations: list[str] = []
    made, again = False, 0
    try:
        made, again = _play(world, violations)
    except (AssertionError, subprocess.TimeoutExpired, OSError) as error:
        violations.append(f"the run itself: {error!r}")
    finally:
        left = world.processes()
        world.kill_everything()
        if left and not violations:
            violations.append(f"processes at the end: {left}")
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)
    if not violations:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        world.say(f"kept in {folder}")
    took_s = time.monotonic() - start
    return Outcome(scenario, made, violations, again, took_s, world.log)


def _play(world: World, violations: list[str]) -> tuple[bool, int]:
    one = world.scenario
    if one.kind == "port":
        world.port = faults.free_port()
    if one.kind == "disk" and not os.path.ismount(world.lab.folder):
        world.say("no small file system could be mounted")
        return False, 0
    world.write_campaign()
    world.decoy = _decoy()
    watcher = Watcher(world)
    watcher.start()
    try:
        return _break_and_mend(world, violations)
    finally:
        watcher.stop()
        violations += watcher.seen


class Watcher(threading.Thread):
    """Looks all the time whether two servers are kept at once."""

    def __init__(self, world: World) -> None:
        super().__init__(daemon=True)
        self.world = world
        self.seen: list[str] = []
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.25):
            servers = self.world.servers()
            if len(servers) > 1 and not self.seen:
                self.seen.append(f"two servers at once: {servers}")

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _break_and_mend(world: World, violations: list[str]) -> tuple[bool, int]:
    one = world.scenario
    process = world.start()
    made = one.kind == "server" or (world.await_phase(process) and faults.inject(world, process))
    code = world.finish(process)
    world.say(f"first invocation ended with {code}")
    for check in (
        checks.no_process_left,
        checks.no_lease_left,
        checks.strangers_unharmed,
        checks.nothing_half_written,
    ):
        violations += [f"after the fault: {text}" for text in check(world)]
    before = stored(world.lab.root)
    faults.undo(world)
    again = 0
    while again < _AGAIN:
        again += 1
        code = world.finish(world.start())
        world.say(f"invocation {again} after the fault ended with {code}")
        if code == 0:
            break
    if code:
        violations.append(f"{again} further invocations did not complete the campaign")
        return made, again
    for text in (
        *checks.no_process_left(world, again=True),
        *checks.no_lease_left(world),
        *checks.strangers_unharmed(world),
        *checks.nothing_half_written(world),
        *checks.no_point_lost(world, before),
        *checks.complete(world),
        *checks.nothing_to_do(world),
    ):
        violations.append(f"at the end: {text}")
    if again > 1:
        violations.append(f"{again} invocations were needed after the fault was gone")
    return made, again


def _decoy() -> subprocess.Popen[bytes]:
    """Start a stranger's server that looks exactly like ours, on another port."""
    return subprocess.Popen(
        [
            sys.executable,
            *("-m", "sglang.launch_server", "--model-path", "tiny", "--host", "127.0.0.1"),
            *("--port", str(faults.free_port()), "--standin-life-s", "600"),
        ],
        env={**os.environ, "PYTHONPATH": str(PROJECT / "tests/standin")},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _mount(folder: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MIB}m", "tmpfs", str(folder)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
