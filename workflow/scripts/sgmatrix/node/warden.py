"""Keeps one server: parent and sub-reaper of its whole process tree, holder of its lease.

It waits for the lease, looks whether the node is free, starts the server, proves that it is
ready and ours, and ends it when asked to, when the server dies, when its owner (the Snakemake
process) is gone, when a deadline passes, or when no job uses it. Only when the tree is gone
and the port closed does it let go of the lease. A server therefore never outlives its campaign.

Speaks to the launch job by JSON lines on stdout, listens on a FIFO, and leaves `closed.json`.
Standard library only, so that it starts in milliseconds and stays small.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any, NoReturn

from sgmatrix.core.clock import now_utc
from sgmatrix.core.environment import server_environment
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.events import emit
from sgmatrix.core.files import read_json, write_json, write_text
from sgmatrix.core.redact import redact
from sgmatrix.node import gpus, preflight, proc, shm
from sgmatrix.node.climb import Climb
from sgmatrix.node.lease import Lease, device_names, try_lease
from sgmatrix.node.leftovers import end_leftovers, token_of
from sgmatrix.node.logmask import mask_former_logs, mask_log
from sgmatrix.node.logwatch import LogWatch
from sgmatrix.node.proof import STATUS_VARIABLE, status_folder
from sgmatrix.node.rundirs import remove_abandoned
from sgmatrix.node.sampling import Sampling
from sgmatrix.node.time_limit import why_too_late
from sgmatrix.node.verdict import DIED, Verdict, judge
from sgmatrix.node.wakeups import Closing, Wakeups

_PR_SET_CHILD_SUBREAPER = 36
_LEASE_POLL_S = 0.02
_SERVE_POLL_S = 0.2
_TELL_S = 5.0
_FOLLOWS_S = 8.0
"""After a worker's end: how long the server may take to end as well; it writes diagnostics."""
_libc = ctypes.CDLL(None, use_errno=True)


class Warden:
    """One server's life, from lease to proven end."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.run_dir = Path(spec["run_dir"])
        self.attempt_dir = Path(spec["attempt_dir"])
        self.limits = spec["deadlines"]
        self.times: dict[str, float] = {"asked": time.time()}
        self.lease: Lease | None = None
        self.gpu_baseline: dict[str, int | None] = {}
        self.server: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.nonce = f"{spec['cell']['id']}-{secrets.token_hex(4)}"
        self.log: LogWatch | None = None
        self.pids: set[int] = set()
        """Every process of the server that was seen."""
        self.leftovers: list[str] = []
        self.status: Path | None = None
        """Processes of earlier servers that were ended before this one began."""
        self.sampling = Sampling()
        self.wakeups = Wakeups(self.run_dir / "control", spec["owner"])

    def tell(self, event: str, **facts: Any) -> None:
        line = json.dumps({"event": event, **facts}) + "\n"
        data = line.encode()
        out = sys.stdout.fileno()
        end = time.monotonic() + _TELL_S
        with contextlib.suppress(OSError):  # the launch job may be gone, or not read any more
            while data and select.select([], [out], [], max(0.0, end - time.monotonic()))[1]:
                data = data[os.write(out, data) :]

    def _emit(self, event: str, **facts: Any) -> None:
        spec = self.spec
        where = {"cell": spec["cell"]["id"], "launch": spec["launch"]}
        emit(Path(spec["events"]), event, **where, **facts)

    # -- its phases ------------------------------------------------------------------------

    def take_lease(self) -> None:
        cell = self.spec["cell"]
        names = device_names(cell["gpus"], self.spec["node"]["gpus"])
        if cell["gpus"] > len(names):
            raise SgmatrixError(
                "gpu_busy",
                f"the cell needs {cell['gpus']} GPUs, {len(names)} are there: {names}",
                fix="give the campaign more in CUDA_VISIBLE_DEVICES, or take out the cell",
            )
        locks = gpus.lock_names(names)
        said = None
        while True:
            answer = try_lease(names, max(cell["gpus"], 1), self._note(), locks)
            if isinstance(answer, Lease):
                self.lease = answer
                self.times["leased"] = time.time()
                if late := why_too_late(self.spec.get("begin_by"), time.time()):
                    raise Closing("interrupted", late)
                self.wakeups.wait(0)  # nothing begins for an owner that went while it waited
                return
            if answer and answer != said:
                said = answer
                self._emit("waiting", holders=answer)
            if self.spec["stopping"] and Path(self.spec["stopping"]).exists():
                raise Closing("interrupted", "the campaign is being stopped")
            self.wakeups.wait(_LEASE_POLL_S)

    def _note(self) -> dict[str, Any]:
        """Return what others may read of the holder of a lease."""
        spec = self.spec
        who = {"campaign": spec["campaign"], "cell": spec["cell"]["id"], "pid": os.getpid()}
        return {**who, "since": now_utc()}

    def look_around(self) -> None:
        """Refuse a node that is not free; say so when it is an earlier server that holds it."""
        assert self.lease is not None
        try:
            self._look_around()
        except SgmatrixError as refusal:
            if self.lease.warning:
                raise SgmatrixError(
                    refusal.code, f"{refusal.facts}; {self.lease.warning}", fix=refusal.fix
                ) from None
            raise

    def _look_around(self) -> None:
        assert self.lease is not None
        self.leftovers = end_leftovers(self.limits["stop_s"])
        if self.leftovers:
            self._emit("leftovers", ended=self.leftovers)
        remove_abandoned()
        preflight.check_disk(self.attempt_dir, self.spec["node"]["min_free_disk_mib"])
        preflight.check_memory(self.spec["cell"]["min_free_memory_mb"])
        node = self.spec["node"]
        names = device_names(self.spec["cell"]["gpus"], node["gpus"])
        self.gpu_baseline = gpus.check_gpus(
            self.lease.devices,
            count=min(len(names), node["gpus"]),  # an allocation may hold fewer than the node
            idle_memory_mib=node["idle_memory_mib"],
        )
        asked = self.spec["server"]["port"]
        if asked == "auto":
            self.port = preflight.free_port()
        else:
            preflight.check_port(asked)
            self.port = asked

    def start(self) -> None:
        assert self.lease is not None
        cell = self.spec["cell"]
        self.attempt_dir.mkdir(parents=True)  # a number is used once
        write_json(self.attempt_dir / "spec.json", redact(self.spec))
        cwd = self.run_dir / "cwd"
        cwd.mkdir()
        self.argv = [
            cell["python"],
            *cell["arguments"],
            "--host",
            self.spec["server"]["host"],
            "--port",
            str(self.port),
            "--served-model-name",
            self.nonce,
        ]
        self.sampling.start(
            self.attempt_dir / "telemetry.jsonl",
            self.run_dir / "sampler.json",
            hz=self.spec["telemetry"]["hz"],
            owner=self.spec["owner"],
            devices=self.lease.devices,
        )
        mask_former_logs(self.attempt_dir)
        self._emit("starting", attempt=self.spec["attempt"])
        with (self.attempt_dir / "server.log").open("xb") as log:
            self.times["started"] = time.time()
            try:
                self.server = self._popen(cwd, log)
            except (FileNotFoundError, PermissionError) as error:
                raise SgmatrixError(
                    "engine_missing", f"{cell['python']}: {error.strerror}", fix="make setup"
                ) from None
        self.wakeups.watch_server(self.server.pid)
        self.pids.add(self.server.pid)
        self.log = LogWatch(self.attempt_dir / "server.log")

    def _popen(self, cwd: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
        assert self.lease is not None
        cell = self.spec["cell"]
        declared = dict(cell["env"])
        if cell["oea"]:
            self.status = status_folder(self.attempt_dir)
            self.status.mkdir()
            declared[STATUS_VARIABLE] = str(self.status)
        return subprocess.Popen(
            self.argv,
            env=server_environment(
                declared, self.lease.devices, cell["ranks"], self._token(), cell["unset"]
            ),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=proc.die_with_parent,  # noqa: PLW1509 - no other thread runs yet
        )

    def _token(self) -> str:
        me = proc.identify(os.getpid())
        assert me is not None
        return token_of(self.spec["token"], me)

    def await_ready(self) -> dict[str, Any]:
        """Watch the server while it climbs to ready; end it at the deadlines."""
        assert self.server is not None
        climb = Climb(
            self.spec["cell"],
            port=self.port,
            pid=self.server.pid,
            nonce=self.nonce,
            limit_s=self.limits["start_s"],
            times=self.times,
            done=self.wakeups.wake,
            status=self.status,
        )
        climb.start()
        log = self.attempt_dir / "server.log"
        size, grew = 0, time.monotonic()
        used = sum(mib or 0 for mib in self.gpu_baseline.values()) if self.gpu_baseline else None
        deadline = time.monotonic() + self.limits["start_s"]
        while True:
            self.wakeups.wait(0.5)
            if climb.outcome:
                break
            self._refuse_dead()
            now = time.monotonic()
            if now > deadline:
                limit = f"{self.limits['start_s']:g} s"
                raise Closing("start_timeout", f"not ready after {limit}{climb.seen()}")
            if log.stat().st_size != size:
                size, grew = log.stat().st_size, now
            elif now - grew > self.limits["stall_s"]:
                held, used = used, gpus.used_mib(self.gpu_baseline)
                if used is None or held is None or used <= held:
                    limit = f"{self.limits['stall_s']:g} s"
                    raise Closing("start_stalled", f"no log line for {limit}")
                grew = now  # silent, but it goes on filling its GPUs
        if "reason" in climb.outcome:
            raise Closing(climb.outcome["reason"], climb.outcome["detail"])
        self.times["ready"] = time.time()
        return climb.outcome

    def serve(self) -> NoReturn:
        """Keep the server until something ends it; its workers are watched as well as itself."""
        assert self.server is not None
        self.pids |= set(proc.tree(os.getpid()))
        self.wakeups.watch_workers(proc.engine_workers(self.server.pid))
        while True:
            try:
                self.wakeups.wait(_SERVE_POLL_S)
            except Closing as closing:
                if closing.args[0] != "worker_died":
                    raise
                self._outlived(f"{closing.args[1]} ended")
            self._refuse_dead()
            if self.wakeups.idle_s() > self.limits["idle_s"]:
                raise Closing(
                    "interrupted", f"no job used the server for {self.limits['idle_s']:g} s"
                )

    def _refuse_dead(self) -> None:
        """End a server whose engine has died, or that somebody stopped for a while.

        What it measured while it was stopped is no result.
        """
        assert self.server is not None and self.log is not None
        if line := self.log.death():
            self._outlived(line)
        # the processes that are known: looking for new ones costs more than looking at them
        held = proc.stopped(self.pids)
        held = proc.stopped({*held, self.server.pid} & {*proc.tree(os.getpid())}) if held else []
        if proc.was_stopped(self.server.pid) or held:
            raise Closing("interrupted", f"the server was stopped by a signal, pids {held}")

    def _outlived(self, what: str) -> NoReturn:
        """End a server whose engine is dead; its front end may go on answering for ever."""
        if self.wakeups.server_ends(_FOLLOWS_S):
            raise Closing(DIED, "")
        raise Closing("server_crash", f"{what}; the front end went on answering")

    # -- the end ---------------------------------------------------------------------------

    def close(self, reason: str | None, detail: str) -> dict[str, Any]:
        """End the tree, prove it, and write down how it went."""
        self.times["stopping"] = time.time()
        if reason == "interrupted":
            self._stop_campaign(detail)
        if self.server is not None:
            self._emit("stopping")
        statuses: dict[int, int] = {}
        self.pids |= set(proc.tree(os.getpid()))
        how = proc.end_tree(self.limits["stop_s"], statuses)
        code = None
        verdict = Verdict(reason, detail)
        if self.server is not None:
            code = statuses.get(self.server.pid)
            mask_log(self.attempt_dir / "server.log")
            verdict = judge(
                reason,
                detail,
                attempt_dir=self.attempt_dir,
                port=self.port,
                exit_code=code,
                times=self.times,
                min_free_disk_mib=self.spec["node"]["min_free_disk_mib"],
            )
        reason, detail = verdict.reason, verdict.detail
        drained = gpus.await_drained(
            self.gpu_baseline if self.server is not None else {},
            deadline_s=0 if how == "survivors" else self.limits["stop_s"],
        )
        if not drained.ok:
            reason, detail = "drain_failed", drained.detail
        port_free = not self._holds_port()
        if how == "survivors" or (self.server is not None and not port_free):
            reason = "drain_failed"
            detail = f"processes left: {proc.tree(os.getpid())}, port {self.port} free: {port_free}"
        self.sampling.stop()
        if reason == "drain_failed" and self.lease is not None:
            self.lease.note_failed_drain(self._note(), detail)
        self.times["closed"] = time.time()
        return {
            "reason": reason,
            "detail": detail,
            **verdict.log,
            "leftovers_ended": self.leftovers,
            "shm_removed_bytes": 0 if how == "survivors" else shm.remove_segments(self.pids),
            "server_exit_code": code,
            "ended_by": how,
            "port_free": port_free,
            "gpu_memory_mib": drained.memory_mib(),
            "times": self.times,
        }

    def _holds_port(self) -> bool:
        """Tell whether a process of the server still listens; a stranger's port is not ours."""
        inodes = proc.listening_inodes(self.port) if self.port else set()
        return bool(inodes) and bool(proc.owners(inodes, {*self.pids, *proc.tree(os.getpid())}))

    def _stop_campaign(self, why: str) -> None:
        """Let no launch of this invocation begin for which nobody will measure."""
        marker = self.spec["stopping"]
        with contextlib.suppress(OSError):
            if marker and not Path(marker).exists():
                write_text(Path(marker), why + "\n")

    def live(self) -> dict[str, Any]:
        """Run all phases; return the closing record."""
        reason: str | None
        try:
            self.wakeups.use(self.spec["job"])
            self.take_lease()
            self.look_around()
            self.start()
            outcome = self.await_ready()
            assert self.server is not None and self.lease is not None
            self.tell(
                "ready",
                port=self.port,
                nonce=self.nonce,
                argv=redact(self.argv),
                devices=self.lease.devices,
                times=self.times,
                server=(proc.identify(self.server.pid) or proc.Identity(0, 0, "")).record(),
                info=outcome["info"],
            )
            self._emit("ready")
            self.serve()
        except Closing as closing:
            reason, detail = closing.args
        except SgmatrixError as refusal:
            reason, detail = (
                refusal.code,
                refusal.facts + (f"; fix: {refusal.fix}" if refusal.fix else ""),
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, the server is ended and proven gone
            reason, detail = "interrupted", f"the warden failed: {error!r}"
        return self.close(reason, detail)


def main(spec_path: str) -> None:
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    spec = read_json(Path(spec_path))
    warden = Warden(spec)

    def note(number: int, _frame: object) -> None:
        warden.wakeups.signals.append(number)
        warden.wakeups.wake()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, note)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: warden.wakeups.wake())
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    os.set_blocking(sys.stdout.fileno(), False)
    record = warden.live()
    if warden.attempt_dir.is_dir() and warden.server is not None:
        write_json(warden.attempt_dir / "closed.json", record)
    warden.tell("closed", **record)
    shutil.rmtree(warden.run_dir, ignore_errors=True)
    # The lease goes with the process.


if __name__ == "__main__":
    main(sys.argv[1])
