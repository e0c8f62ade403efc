"""nvidia-smi, asked so that a driver that never answers cannot hold anything up.

Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
from collections.abc import Sequence

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.node import proc

_TIMEOUT_S = 20.0
"""A busy driver needs seconds, a broken one never answers."""
_TERM_S, _KILL_S = 0.5, 0.3
"""How long nvidia-smi has after each signal; after both it is left alone, in state D."""
_OUTPUT_BYTES, _SAID_CHARACTERS = 2**20, 300
_LOST = re.compile(r"GPU is lost|fallen off the bus|Unable to determine the device handle")

_UNKNOWN = re.compile(r"\[.*\]|.*\bERR\b.*|N/A|Not Supported|Unknown Error|")

_stuck: list[subprocess.Popen[bytes]] = []
"""Those that were given up; kept, since nobody may wait for them."""


def run_smi(
    arguments: Sequence[str], timeout_s: float | None = None, *, lost_ok: bool = False
) -> str:
    """Return what nvidia-smi prints, first on stdout, then on stderr.

    It runs in a session of its own and writes to memory, not to a pipe that one of its
    children could hold open. Past the deadline it is ended, and given up within a second when
    even SIGKILL does not end it.

    Args:
        arguments: its command line.
        timeout_s: deadline for its answer.
        lost_ok: take an answer that tells of a lost GPU, whatever the exit code.

    Raises:
        SgmatrixError: `gpu_busy` when it is absent, does not answer in time, or fails.
    """
    limit_s = _TIMEOUT_S if timeout_s is None else timeout_s
    with (
        os.fdopen(os.memfd_create("stdout"), "w+b") as out,
        os.fdopen(os.memfd_create("stderr"), "w+b") as err,
    ):
        try:
            process = subprocess.Popen(
                ["nvidia-smi", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            raise unseen(
                f"cannot be run: {error}",
                "install the NVIDIA driver or put nvidia-smi on PATH; the CPU engine "
                "(engines.<name>.device: cpu) needs none",
            ) from None
        in_time = False
        try:
            in_time = _wait(process, limit_s)
        finally:
            if not in_time:
                _end(process)
        text = _text(out.fileno()) + _text(err.fileno())
    if not in_time:
        left = "" if process.returncode is not None else f"; pid {process.pid} cannot be killed"
        raise unseen(
            f"did not answer within {limit_s:g} s{left}{_said(text)}",
            "run nvidia-smi by hand; a driver that hangs needs its GPU reset or a reboot",
        )
    code = process.wait()
    if code != 0 and not (lost_ok and _LOST.search(text)):
        raise _failed(code, text)
    return text


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Wait for the end of a child without collecting it; False when it runs on."""
    descriptor = os.pidfd_open(process.pid)
    try:
        return bool(select.select([descriptor], [], [], timeout_s)[0])
    finally:
        os.close(descriptor)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End nvidia-smi and what it started, or leave it to the kernel."""
    gone = False
    for number, grace_s in ((signal.SIGTERM, _TERM_S), (signal.SIGKILL, _KILL_S)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        gone = _wait(process, grace_s)
    if gone:
        process.wait()
    else:
        _stuck.append(process)
        proc.set_aside(process.pid)


def _text(descriptor: int) -> str:
    return os.pread(descriptor, _OUTPUT_BYTES, 0).decode(errors="replace")


def _said(text: str) -> str:
    lines = "; ".join(line.strip() for line in text.splitlines() if line.strip())
    return f": {lines[:_SAID_CHARACTERS]}" if lines else ""


def _failed(code: int, text: str) -> SgmatrixError:
    if "version mismatch" in text:
        fix = "the driver was updated beneath the running kernel: reload its modules or reboot"
    elif _LOST.search(text):
        fix = "reset the GPU or reboot the node"
    else:
        fix = "make nvidia-smi work on this node"
    how = f"ended with {code}" if code >= 0 else f"was ended by signal {-code}"
    return unseen(f"{how}{_said(text) or ': no output'}", fix)


def unseen(what: str, fix: str) -> SgmatrixError:
    return SgmatrixError("gpu_busy", f"cannot see the GPUs: nvidia-smi {what}", fix=fix)


def known(text: str) -> str | None:
    """Return a value of nvidia-smi, None for its many ways to say that it has none."""
    return None if _UNKNOWN.fullmatch(text) else text


def number(text: str) -> float | None:
    """Return a value without its unit; None when it is no number."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(?: ?[A-Za-z]+)?", text)
    return float(found[1]) if found else None


def whole(text: str) -> int | None:
    """Return a whole value without its unit; None when it is no number."""
    found = number(text)
    return None if found is None else int(found)
