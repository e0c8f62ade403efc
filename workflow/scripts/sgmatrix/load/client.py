"""Adaptor of SGLang's own load clients: command line, run under a deadline, result line.

Owns: how the client is called and ended. Not here: whether its numbers hold (`load.result`).
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgmatrix.core.environment import engine_environment
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.load.client_clock import ClientClock
from sgmatrix.load.client_use import Look, Watch
from sgmatrix.load.offer import Offer
from sgmatrix.load.prompts import write_prompts
from sgmatrix.node import proc
from sgmatrix.node.server import Server

_RUST = Path(__file__).with_name("rust_client.py")
_PYTHON = Path(__file__).with_name("python_client.py")
_SOCKETS_PER_REQUEST = 4
"""Descriptors to have free per request in flight."""
_END_S = 5.0
_POLL_S = 0.2
_FROM_OUTSIDE = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGKILL)
"""Signals that a client does not send itself; the kernel sends the last one when memory ends."""


@dataclass(frozen=True)
class ClientRun:
    """How one call of the client went."""

    line: dict[str, Any] | None
    """The result line; None when it wrote none."""
    exit_code: int | None
    """None when it was ended, by the deadline or because the server had closed."""
    timed_out: bool
    killed_by: int | None
    """Signal with which somebody else ended it; None where nobody did."""
    wall_s: float
    last_words: str
    wrote_s: float = 0.0
    """When it wrote its line, Unix time; the Python client takes seconds to end after that."""
    began_s: float | None = None
    """When it began to send, Unix time; None where it did not say."""
    looks: tuple[Look, ...] = ()
    """What it had taken of the machine, at moments while it ran."""

    def window_s(self, duration_s: float | None) -> tuple[float, float]:
        """Return begin and end of what the client measured, Unix time.

        The Python client counts all tokens again before it writes its line.

        Args:
            duration_s: from the line; None: not known, and all of the call counts.
        """
        if self.began_s is not None and duration_s is not None:
            return self.began_s, self.began_s + duration_s
        return self.wrote_s - (duration_s or self.wall_s), self.wrote_s


def arguments(
    offer: Offer,
    client: dict[str, Any],
    server: Server,
    model_path: str,
    output: Path,
    prompts: Path | None,
) -> list[str]:
    """Return the client's arguments.

    Lengths are fixed (range ratio 1); the client's own warm-up is off, since the workflow warms
    up and flushes the cache itself. Where token ids are sent, no tokenizer takes part.
    """
    common: dict[str, Any] = {
        "backend": "sglang",
        "base-url": f"http://127.0.0.1:{server.port}",
        "num-prompts": offer.requests,
        "warmup-requests": 0,
        "ready-check-timeout-sec": 5,
        "seed": offer.seed,
        "output-file": output,
    }
    if offer.concurrency is not None:
        common["max-concurrency"] = offer.concurrency
    if offer.request_rate is not None:
        common["request-rate"] = f"{offer.request_rate:.10g}"
    switches = ["--output-details", "--disable-tqdm"]
    if prompts is None:
        switches.append("--tokenize-prompt")
    if client["kind"] == "rust":
        common |= {"model": server.nonce, "vocab-size": client["vocab_size"]}
        switches.append("--disable-retokenize")
    else:
        common |= {"model": model_path, "served-model-name": server.nonce}
    common |= _dataset(offer, prompts)
    return [*(f"--{name}={value}" for name, value in common.items()), *switches]


def _dataset(offer: Offer, prompts: Path | None) -> dict[str, Any]:
    if prompts is not None:
        return {
            "dataset-name": "custom",
            "dataset-path": prompts,
            "sharegpt-output-len": offer.output_len,
        }
    if offer.dataset == "shared-prefix":
        prefix_len, groups = offer.prompts["prefix_len"], offer.prompts["groups"]
        return {
            "dataset-name": "generated-shared-prefix",
            "gsp-num-groups": groups,
            "gsp-prompts-per-group": offer.requests // groups,
            "gsp-system-prompt-len": prefix_len,
            "gsp-question-len": offer.input_len - prefix_len,
            "gsp-output-len": offer.output_len,
        }
    return {
        "dataset-name": offer.dataset,
        "random-input-len": offer.input_len,
        "random-output-len": offer.output_len,
        "random-range-ratio": "1.0",
    }


def command(client: dict[str, Any], args: list[str], burstiness: float = 1.0) -> list[str]:
    """Return the command line of the client."""
    if client["kind"] == "rust":
        return [client["python"], "-I", "-S", str(_RUST), client["extension"], *args]
    return [client["python"], str(_PYTHON), f"{burstiness:.10g}", *args]


def run_client(
    offer: Offer,
    client: dict[str, Any],
    server: Server,
    model_path: str,
    folder: Path,
    *,
    deadline_s: float,
    meanwhile: Callable[[], object] = lambda: None,
) -> ClientRun:
    """Offer a load and wait for the end of it, of the server, or of the deadline.

    Args:
        offer: the load.
        client: the campaign's one load client, from the plan.
        server: the running server.
        model_path: for the Python client, which wants the model's files.
        folder: empty folder that keeps the client's output.
        deadline_s: after which the client is ended.
        meanwhile: work to do while the client starts; it pauses for a second of its own.

    Raises:
        SgmatrixError: `client_setup` when the client cannot be run at all, `interrupted` when
            somebody stopped it for a while.
    """
    folder.mkdir(parents=True)
    output = folder / "result.jsonl"
    prompts = write_prompts(offer, folder / "prompts.jsonl")
    args = arguments(offer, client, server, model_path, output.resolve(), prompts)
    descriptors = _descriptors(offer)
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="sgmatrix-client-") as cwd,
        (folder / "client.log").open("xb") as log,
    ):
        clock = ClientClock(log, output)
        try:
            process = subprocess.Popen(
                command(client, args, offer.burstiness),
                env={**engine_environment(client["env"]), **_own_home(client, Path(cwd))},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: _begin(descriptors),  # noqa: PLW1509 - no other thread runs yet
            )
        except OSError as error:
            raise SgmatrixError(
                "client_setup", f"{client['python']}: {error}", fix="make setup"
            ) from None
        left_alone = False
        watch = Watch(process.pid)

        def look() -> None:
            watch.look()
            if client["kind"] == "python":
                clock.look()

        try:
            meanwhile()
            timed_out = _await(process, server, started + deadline_s, look)
            left_alone = _has_ended(process)
        finally:
            ended_s = time.time()
            _end(process)
    code = process.returncode if process.returncode >= 0 and not timed_out else None
    return ClientRun(
        line=_only_line(output),
        exit_code=code,
        timed_out=timed_out,
        killed_by=-process.returncode
        if left_alone and -process.returncode in _FROM_OUTSIDE
        else None,
        wall_s=time.monotonic() - started,
        last_words=_last_words(folder / "client.log"),
        wrote_s=min(ended_s, clock.wrote_s() or ended_s),
        began_s=clock.began_s,
        looks=tuple(watch.looks),
    )


def _own_home(client: dict[str, Any], cwd: Path) -> dict[str, str]:
    """Return what the Python client has for its own.

    It keeps prompts below the home folder under a name that does not tell models apart; and in
    one log, what it printed must not come after why it failed.
    """
    if client["kind"] == "rust":
        return {}
    models = os.environ.get("HF_HOME") or str(Path.home() / ".cache/huggingface")
    return {"PYTHONUNBUFFERED": "1", "HOME": str(cwd / "home"), "HF_HOME": models}


def _descriptors(offer: Offer) -> int:
    """Return how many files the client has to be able to open.

    Raises:
        SgmatrixError: `client_setup` when the system does not allow so many.
    """
    wanted = _SOCKETS_PER_REQUEST * offer.connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if offer.concurrency is None and hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)  # how many will be in flight at once is not known
    if hard != resource.RLIM_INFINITY and wanted > hard:
        raise SgmatrixError(
            "client_setup",
            f"{offer.connections} requests in flight need {wanted} open files, {hard} are allowed",
            fix=f"ulimit -Hn {wanted}, or a lower concurrency",
        )
    return max(wanted, soft)


def _begin(descriptors: int) -> None:
    """Set up the client's process, before it runs."""
    proc.die_with_parent()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, hard))


def _await(
    process: subprocess.Popen[bytes], server: Server, deadline: float, look: Callable[[], None]
) -> bool:
    """Wait for the client, the server's warden or the deadline; tell whether it was the latter."""
    warden = server.watch()
    if warden is None:  # it ended while the client started
        return False
    watched = [os.pidfd_open(process.pid), warden]
    try:
        while (remaining := deadline - time.monotonic()) > 0:
            if select.select(watched, [], [], min(remaining, _POLL_S))[0]:
                return False
            look()
            if proc.was_stopped(process.pid):
                raise SgmatrixError(
                    "interrupted", f"the load client was stopped by a signal, pid {process.pid}"
                )
        return True
    finally:
        for descriptor in watched:
            os.close(descriptor)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Tell whether the client has ended, without collecting it: its group keeps its number."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the client if it still runs, then whatever is left of its process group."""
    if not _has_ended(process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        _await_end(process, _END_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _await_end(process: subprocess.Popen[bytes], limit_s: float) -> None:
    """Wait until the client has ended, without collecting it."""
    descriptor = os.pidfd_open(process.pid)
    try:
        select.select([descriptor], [], [], limit_s)
    finally:
        os.close(descriptor)


def _only_line(path: Path) -> dict[str, Any] | None:
    """Return the client's one result line; a fresh file per attempt holds no other."""
    try:
        # a generated text may hold what `splitlines` takes for an end of line, such as U+2028
        lines = [text for text in path.read_text(encoding="utf-8").split("\n") if text.strip()]
        if len(lines) != 1:
            return None
        line = json.loads(lines[0])
    except (OSError, ValueError):
        return None
    return line if isinstance(line, dict) else None


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "no output")
