"""The lock-step server as a process: compiled, started on a core, stopped, its record read.

Not here  what follows from the record (`truth`).
"""

from __future__ import annotations

import json
import os
import select
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.node import proc

HERE = Path(__file__).parent
_READY_S = 10.0
_STOP_S = 10.0


@dataclass(frozen=True)
class Streamed:
    """One request, as the server saw it; times in microseconds of CLOCK_MONOTONIC."""

    arrived_us: int
    """When its first byte was read."""
    prompt_tokens: int
    asked: int
    """Output tokens."""
    sent_us: tuple[int, ...]
    """When each token was handed to the kernel; fewer than asked when the client went away."""


@dataclass(frozen=True)
class Record:
    """What the server did."""

    ticks: int
    missed_ticks: int
    """Ticks that came before the last one was served; more than 0 voids the record."""
    longest_tick_ms: float
    requests: tuple[Streamed, ...]

    @classmethod
    def from_json(cls, text: str) -> Record:
        record = json.loads(text)
        return cls(
            record["ticks"],
            record["missed_ticks"],
            record["longest_tick_us"] / 1e3,
            tuple(
                Streamed(
                    one["arrived_us"], one["prompt_tokens"], one["asked"], tuple(one["sent_us"])
                )
                for one in record["requests"]
            ),
        )


def build(folder: Path) -> Path:
    """Compile the server into a folder; return the program.

    Raises:
        SgmatrixError: `no_compiler` when there is no C compiler, or it fails.
    """
    program = folder / "lockstep"
    sources = sorted(str(source) for source in HERE.glob("*.c"))
    try:
        subprocess.run(
            ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(program), *sources],
            check=True,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise SgmatrixError(
            "no_compiler",
            "the lock-step server is C, and there is no cc",
            fix="apt-get install gcc",
        ) from None
    except subprocess.CalledProcessError as error:
        raise SgmatrixError("no_compiler", f"cc: {error.stderr.strip()[:2000]}") from None
    return program


class Lockstep:
    """A running lock-step server; a context manager that leaves no process behind."""

    def __init__(
        self, program: Path, *, tick_ms: float, first_ms: float, model_path: str, core: int
    ) -> None:
        def pinned() -> None:
            proc.die_with_parent()
            os.sched_setaffinity(0, {core})

        self.process = subprocess.Popen(
            [str(program), str(round(1e3 * tick_ms)), str(round(1e3 * first_ms)), model_path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            preexec_fn=pinned,  # noqa: PLW1509 - no other thread runs
            text=True,
        )
        assert self.process.stdout is not None
        ready = select.select([self.process.stdout], [], [], _READY_S)[0]
        line = self.process.stdout.readline() if ready else ""
        if not line.strip().isdigit():
            self._end()
            raise SgmatrixError("no_lockstep", f"{program} said {line!r} where its port belongs")
        self.port = int(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process.kill()
        self.process.wait()

    def stop(self) -> Record:
        """Stop the server; return its record."""
        self.process.terminate()
        return Record.from_json(self.process.communicate(timeout=_STOP_S)[0])
