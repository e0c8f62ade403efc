"""The faults that come from outside, made at their moment."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

from chaos.world import World

_FIND_S = 3.0

# Binds a port as soon as it can and holds it; answers every request with 200.
THIEF = """
import http.server, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"{}")
    do_POST = do_GET
    def log_message(self, *_): pass
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
        print("took", flush=True)
        server.serve_forever()
    except OSError:
        time.sleep(0.002)
print("never", flush=True)
time.sleep(600)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def inject(world: World, snakemake: subprocess.Popen[str]) -> bool:
    """Make the scenario's fault; tell whether it could be made."""
    kind = world.scenario.kind
    if kind == "signal":
        return _signal(world, snakemake)
    if kind == "port":
        return _steal_port(world)
    if kind == "disk":
        return _fill_disk(world)
    return True


def _signal(world: World, snakemake: subprocess.Popen[str]) -> bool:
    one = world.scenario
    number = signal.Signals[one.signal]
    end = time.monotonic() + _FIND_S
    while (pid := world.find(one.target, snakemake.pid)) is None:
        if time.monotonic() > end or snakemake.poll() is not None:
            return False
        time.sleep(0.01)
    group = one.target == "snakemake" and one.whole_group
    send = os.killpg if group else os.kill
    try:
        send(pid, number)
    except ProcessLookupError:
        return False
    world.say(f"{one.signal} to {one.target}, pid {pid}")
    if number is signal.SIGSTOP:
        time.sleep(one.stopped_s)  # the fault itself
        with contextlib.suppress(ProcessLookupError):
            send(pid, signal.SIGCONT)
    return True


def _steal_port(world: World) -> bool:
    world.thief = subprocess.Popen(
        [sys.executable, "-c", THIEF, str(world.port), "2"], stdout=subprocess.PIPE
    )
    assert world.thief.stdout is not None
    with world.thief.stdout as told:
        word = told.readline().decode().strip()
    world.say(f"the thief {word} port {world.port}")
    return word == "took"


def _fill_disk(world: World) -> bool:
    """Take all that is left of the small file system that the results lie on."""
    ballast = world.lab.folder / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(65536))
    world.say(f"ballast of {ballast.stat().st_size // 1024 if ballast.exists() else 0} KiB")
    return True


def undo(world: World) -> None:
    """Take away what a fault holds, as the owner of the node would."""
    (world.lab.folder / "ballast").unlink(missing_ok=True)
    if world.thief is not None:
        assert world.thief.poll() is None, "the thief was harmed"
        world.thief.kill()
        world.thief.wait()
        world.thief = None
