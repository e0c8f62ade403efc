"""One call of a load client, as the workflow calls it, against a lock-step server of its own.

Not here  the order of trials and how often one is repeated (`series`).
"""

from __future__ import annotations

import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perf.lockstep import burner
from perf.lockstep.account import Machine, Scheduled, Waits, waits
from perf.lockstep.server import Lockstep, Record
from perf.lockstep.truth import Errors, Truth, errors_of, truth_of
from sgmatrix.core.environment import engine_environment
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.load.client import arguments, command
from sgmatrix.load.offer import Offer
from sgmatrix.load.result import request_rows, summarise
from sgmatrix.node import proc
from sgmatrix.node.server import Server

INPUT_TOKENS = 64
_SAMPLE_S = 0.2
"""As often as `load.client` looks at a client that runs."""
_DEADLINE_S = 180.0


@dataclass(frozen=True)
class Bench:
    """What all trials have in common."""

    program: Path
    """The lock-step server."""
    model_path: str
    """Tokenizer files for the Python client."""
    server_core: int
    client_core: int
    tick_ms: float
    first_ms: float
    tokens: int
    """Output tokens per request."""


@dataclass(frozen=True)
class Use:
    """What a client process can tell of itself."""

    cpu_s: float
    """From its start to its end."""
    wall_s: float
    load_s: float
    """The duration in the client's own line: without its start and its fixed pause."""
    during_load: Waits | None
    """None when it ended before there were two samples. Of the Python client no good figure: it
    goes on after its load."""
    switches: int
    """Context switches from start to end, voluntary ones."""
    preemptions: int
    """The same, involuntary ones."""


@dataclass(frozen=True)
class Trial:
    """What a client reported, what is true, and what it used."""

    client: str
    streams: int
    truth: Truth
    errors: Errors
    use: Use
    missed_ticks: int
    longest_tick_ms: float
    foreign_cores: float
    """Cores that others used on average; a burner of the bench counts as its own."""

    @property
    def concurrency_share(self) -> float:
        """Achieved concurrency over what was asked for."""
        return self.truth.concurrency / self.streams


def run_trial(
    bench: Bench, client: dict[str, Any], streams: int, *, burn: float | None = None
) -> Trial:
    """Offer one wave of requests, as many as streams, and compare.

    Args:
        bench: what all trials have in common.
        client: one client, as a plan describes it.
        streams: requests, all at once.
        burn: share of the time that a neighbour uses the client's core; None for no neighbour.

    Raises:
        SgmatrixError: when the client fails, or its line is not that of this load.
    """
    offer = Offer("random-ids", streams, INPUT_TOKENS, bench.tokens, streams, seed=1)
    own_s, before = _own_cpu_s(), Machine.now()
    with (
        tempfile.TemporaryDirectory(prefix="sgmatrix-bench-") as folder,
        Lockstep(
            bench.program,
            tick_ms=bench.tick_ms,
            first_ms=bench.first_ms,
            model_path=bench.model_path,
            core=bench.server_core,
        ) as lockstep,
        _neighbour(bench.client_core, burn),
    ):
        line, use = _run(bench, client, offer, lockstep.port, Path(folder))
        record = lockstep.stop()
    foreign = before.foreign_cores(Machine.now(), _own_cpu_s() - own_s)
    truth = truth_of(record)
    rows = request_rows(line, offer.requests, offer.output_len)
    _check_tokens(record, rows, offer)
    return Trial(
        client=client["id"],
        streams=streams,
        truth=truth,
        errors=errors_of(truth, summarise(rows, line.get("duration"))),
        use=use,
        missed_ticks=record.missed_ticks,
        longest_tick_ms=record.longest_tick_ms,
        foreign_cores=foreign,
    )


def _own_cpu_s() -> float:
    """CPU seconds of this process and of all its children that have ended."""
    used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@contextmanager
def _neighbour(core: int, share: float | None) -> Iterator[None]:
    if share is None:
        yield
        return
    # a session of its own: where the kernel groups by session, as many desktops and servers
    # do, a neighbour is a peer of the client, whatever their nice values
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", burner.__file__, str(core), str(share)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=proc.die_with_parent,  # noqa: PLW1509 - no other thread runs
    )
    with process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()


def _run(
    bench: Bench, client: dict[str, Any], offer: Offer, port: int, folder: Path
) -> tuple[dict[str, Any], Use]:
    """Run the client on its core; return its line and what it used."""

    def pinned() -> None:
        proc.die_with_parent()
        os.sched_setaffinity(0, {bench.client_core})

    nobody = proc.Identity(pid=0, ticks=0, boot="")
    server = Server(nobody, folder, folder, port, "lockstep", nobody)
    output, log = folder / "result.jsonl", folder / "client.err"
    started_s = time.monotonic()
    # apart: what Python prints waits in a buffer, and would follow the traceback of its end
    with log.open("xb") as words, (folder / "client.out").open("xb") as out:
        process = subprocess.Popen(
            command(client, arguments(offer, client, server, bench.model_path, output, None)),
            env=engine_environment(client["env"]),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=words,
            start_new_session=True,
            preexec_fn=pinned,  # noqa: PLW1509 - no other thread runs
        )
    ended = os.pidfd_open(process.pid)
    try:
        scheduled = Scheduled(process.pid)
        while not select.select([ended], [], [], _SAMPLE_S)[0]:
            scheduled.sample()
            if time.monotonic() - started_s > _DEADLINE_S:
                process.kill()
    finally:
        os.close(ended)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.monotonic() - started_s
    if process.returncode or not output.is_file():
        said = [text for text in log.read_text(errors="replace").splitlines() if text.strip()]
        raise SgmatrixError(
            "client_crash",
            f"{client['id']}: exit code {process.returncode}: {(said or ['no output'])[-1][:300]}",
        )
    line = json.loads(output.read_text().splitlines()[-1])
    return line, Use(
        cpu_s=usage.ru_utime + usage.ru_stime,
        wall_s=wall_s,
        load_s=line["duration"],
        # the load is the last thing that our default client does
        during_load=waits(scheduled.samples, started_s + wall_s - line["duration"]),
        switches=usage.ru_nvcsw,
        preemptions=usage.ru_nivcsw,
    )


def _check_tokens(record: Record, rows: list[dict[str, Any]], offer: Offer) -> None:
    """Both sides must have counted the same, or their times are not of the same tokens."""
    streamed = sorted(len(one.sent_us) for one in record.requests)
    counted = sorted(row["output_tokens"] or 0 for row in rows)
    prompts = {one.prompt_tokens for one in record.requests}
    if streamed != counted or prompts != {offer.input_len}:
        raise SgmatrixError(
            "client_crash",
            f"tokens streamed and counted differ: {sum(streamed)} and {sum(counted)}, prompts of "
            f"{sorted(prompts)} ids for {offer.input_len}",
        )
