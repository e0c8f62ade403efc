"""A warden on the stand-in server, and what it says."""

import contextlib
import json
import os
import select
import signal
from pathlib import Path

import pytest

from builders import History, campaign, campaign_data, launch_spec
from sgmatrix.core.files import read_json, write_json
from sgmatrix.node import proc
from sgmatrix.node.server import Server, start_warden
from standin.launcher import DEADLINE_S


def identity(pid=None):
    """The record of a living process; of this one by default."""
    return proc.identify(pid or os.getpid()).record()


class Kept:
    """A warden that was started with a spec."""

    def __init__(self, spec):
        self.spec = spec
        self.attempt_dir = Path(spec["attempt_dir"])
        self.run_dir = Path(spec["run_dir"])
        write_json(self.run_dir / "spec.json", spec)
        self.process = start_warden(self.run_dir / "spec.json")
        self.identity = proc.identify(self.process.pid)
        self.heard = b""

    def hear(self):
        """The next thing that it tells."""
        while b"\n" not in self.heard:
            pipe = self.process.stdout.fileno()
            assert select.select([pipe], [], [], DEADLINE_S)[0], "the warden says nothing"
            part = os.read(pipe, 65536)
            assert part, "the warden ended without a word"
            self.heard += part
        line, self.heard = self.heard.split(b"\n", 1)
        return json.loads(line)

    def ready(self):
        told = self.hear()
        assert told["event"] == "ready", told
        return told

    def server(self, told):
        """The server as a job sees it, from what the warden told when it was ready."""
        live = {k: told[k] for k in ("port", "nonce", "server")}
        live |= {"warden": self.identity.record(), "run_dir": str(self.run_dir)}
        return Server.from_record({"live": live, "attempt_dir": str(self.attempt_dir)})

    def ask(self, told, **message):
        assert self.server(told).ask(**message)

    def closed(self):
        """The closing record that it tells, once it has ended."""
        told = self.hear()
        assert told.pop("event") == "closed", told
        assert self.process.wait(DEADLINE_S) == 0
        return told

    def events(self):
        path = Path(self.spec["events"])
        return [json.loads(x) for x in path.read_text().splitlines()] if path.exists() else []

    def log(self):
        return (self.attempt_dir / "server.log").read_text()

    def record(self):
        return read_json(self.attempt_dir / "closed.json")


@pytest.fixture
def keep(tmp_path, leases):
    """Start a warden on the stand-in with these server flags, deadlines and changes of its spec."""
    kept = []

    def keep(flags=None, deadlines=None, cell=None, **changes):
        data = campaign_data()
        data["engines"]["standin"]["flags"] |= flags or {}
        plan = History(tmp_path, campaign(engines=data["engines"])).plan
        number = len(kept) + 1
        run_dir = tmp_path / f"run-{number}"
        run_dir.mkdir()
        spec = launch_spec(plan, "tp1", "1", number)
        spec |= {
            "run_dir": str(run_dir),
            "attempt_dir": str(tmp_path / "history" / str(number)),
            "events": str(tmp_path / f"events-{number}.jsonl"),
            "stopping": "",
            "owner": identity(),
            "job": identity(),
        }
        spec["deadlines"] |= deadlines or {}
        spec["cell"] |= cell or {}
        kept.append(Kept({**spec, **changes}))
        return kept[-1]

    yield keep
    for one in kept:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.process.pid, signal.SIGTERM)
        with one.process:  # closes its pipe
            one.process.wait(DEADLINE_S)
