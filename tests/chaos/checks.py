"""What must hold after any fault, and what must hold once the campaign was run again."""

from __future__ import annotations

import fcntl
import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator

import pyarrow.parquet as pq

from chaos.scenario import SERVER_FAULTS
from chaos.world import World, stored

_SETTLE_S = {"standin": 10.0, "sglang-cpu": 45.0}
"""For what is left of a campaign to be gone: more than the stop deadline, less than the idle one,
so that a server that nobody ended for its owner's sake is seen."""


def no_process_left(world: World, *, again: bool = False) -> Iterator[str]:
    """After a SIGKILL of the warden itself, what escaped may wait for the next preflight."""
    one = world.scenario
    excused = one.escaped and (one.target, one.signal) == ("warden", "SIGKILL") and not again
    end = time.monotonic() + _SETTLE_S[one.engine]
    while left := world.processes():
        escaped = [pid for pid, command in left.items() if "sglang.launch_server" in command]
        if excused and len(escaped) == len(left) == 1:
            world.say(f"left for the next preflight: {sorted(left)}")
            return
        if time.monotonic() > end:
            yield f"processes left: {left}"
            return
        time.sleep(0.05)


def no_lease_left(world: World) -> Iterator[str]:
    for path in (world.lab.folder / "leases").glob("*.lock"):
        with path.open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield f"lease {path.name} is still held"


def strangers_unharmed(world: World) -> Iterator[str]:
    for name, process in (("decoy", world.decoy), ("thief", world.thief)):
        if process is not None and process.poll() is not None:
            yield f"the {name} was harmed: exit code {process.poll()}"


def nothing_half_written(world: World) -> Iterator[str]:
    for path in world.lab.root.rglob("*"):
        if path.name.startswith(".") or not path.is_file():
            continue
        try:
            if path.suffix == ".json":
                json.loads(path.read_text())
            elif path.suffix == ".parquet":
                pq.read_table(path)
        except Exception as error:  # noqa: BLE001 - any kind of damage
            yield f"{path.relative_to(world.lab.root)} is half written: {error!r}"


def no_point_lost(world: World, before: dict[str, str]) -> Iterator[str]:
    now = stored(world.lab.root)
    for path, text in before.items():
        if now.get(path) != text:
            yield f"finished point {path} is {'changed' if path in now else 'lost'}"


def complete(world: World) -> Iterator[str]:
    """Every planned point has exactly one current row, none of them of a disturbed step."""
    one = world.scenario
    rows = world.lab.points()
    keys = Counter((r["cell"], r["launch"], r["attempt"], r["load_id"]) for r in rows)
    for key, count in keys.items():
        if count > 1:
            yield f"{count} rows of {key}"
    current = [r for r in rows if r["current"]]
    wanted = {
        (cell, str(launch), f"c000{c}-i8-o16-random-ids")
        for cell in world.cells
        for launch in range(1, one.launches + 1)
        for c in (1, 2)
    }
    have = Counter((r["cell"], r["launch"], r["load_id"]) for r in current)
    if set(have) != wanted or set(have.values()) != {1}:
        yield f"current rows {dict(have)}"
    for row in current:
        yield from _honest(world, row)


def _honest(world: World, row: dict[str, object]) -> Iterator[str]:
    one = world.scenario
    name = f"{row['cell']} launch {row['launch']} {row['load_id']}"
    if row["status"] == "ok":
        if row["completed"] != row["asked"]:
            yield f"{name} is ok with {row['completed']} of {row['asked']} requests"
        stopped = one.kind == "signal" and one.signal == "SIGSTOP" and one.stopped_s >= 2
        slowest = row["e2e_ms_p99"]
        if stopped and isinstance(slowest, float) and slowest > 1000 * one.stopped_s:
            yield f"{name} is ok though it was stopped: E2E p99 {slowest:.0f} ms"
        return
    allowed: tuple[str, ...] = ()
    if one.kind == "server" and row["cell"] == "tp2":
        allowed = SERVER_FAULTS[one.server_fault]
    elif one.kind == "signal" and one.target in ("server", "worker"):
        allowed = ("server_crash",)  # who ended it cannot be seen from its end
    if row["reason"] not in allowed:
        yield f"{name} is {row['status']}({row['reason']}): {row['detail']}"


def nothing_to_do(world: World) -> Iterator[str]:
    done = subprocess.run(
        world.command("-n"),
        cwd=world.lab.folder,
        env=world.lab.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if "Nothing to be done" not in done.stdout + done.stderr:
        yield f"there is still something to do: {(done.stdout + done.stderr)[-600:]}"
