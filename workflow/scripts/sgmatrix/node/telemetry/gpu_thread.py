"""The GPUs in a thread of their own: a driver that hangs costs their values, nothing else."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from sgmatrix.node.telemetry.gpus import Reading, Trouble


class Source(Protocol):
    """What the thread asks; `gpus.Gpus` is one."""

    def open(self) -> dict[str, Any]: ...

    def read(self) -> dict[str, Reading]: ...


class GpuThread:
    """Reads when it is asked to, and hands out the last reading while it is young enough."""

    def __init__(
        self,
        make: Callable[[Callable[[Trouble], None]], Source],
        *,
        max_age_s: float,
        hangs_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start the thread.

        Args:
            make: gives the source, from where it may tell of trouble.
            max_age_s: a reading that is older is not handed out.
            hangs_s: silence that is told as trouble; to load the driver may take seconds.
            clock: the one that `Reading.at_s` is by.
        """
        self._max_age_s, self._hangs_s, self._clock = max_age_s, hangs_s, clock
        self.news: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        """Lines for the file: `{"facts": ...}` once, `{"error": ...}` for each kind of trouble."""
        self._source = make(self._tell)
        self._state = threading.Condition()
        self._asked = self._answered = 0
        self._last: dict[str, Reading] = {}
        self._waiting_since: float | None = None
        self._hung = False
        self._over = False
        threading.Thread(target=self._run, daemon=True, name="gpus").start()

    def ask(self) -> None:
        """Begin a reading, unless one is still under way."""
        with self._state:
            if self._asked == self._answered:
                self._asked += 1
                self._waiting_since = self._clock()
                self._state.notify_all()

    def latest(self, wait_s: float) -> dict[str, Reading]:
        """Return the last reading of each GPU.

        Args:
            wait_s: how long to wait for a reading that is under way.
        """
        with self._state:
            self._state.wait_for(lambda: self._asked == self._answered or self._over, wait_s)
            now_s = self._clock()
            silent_s = 0.0
            if self._asked != self._answered and self._waiting_since is not None:
                silent_s = now_s - self._waiting_since
            if silent_s > self._hangs_s and not self._hung and not self._over:
                self._hung = True
                self._tell(Trouble("nvml", "", "hanging", f"no answer for {silent_s:.1f} s"))
            return {
                key: reading
                for key, reading in self._last.items()
                if now_s - reading.at_s <= self._max_age_s
            }

    def _tell(self, trouble: Trouble) -> None:
        self.news.put({"error": trouble.record()})

    def _run(self) -> None:
        try:
            facts = self._source.open()
            if facts:
                self.news.put({"facts": facts})
            while facts:
                with self._state:
                    self._state.wait_for(lambda: self._asked != self._answered)
                last = self._source.read()
                with self._state:
                    self._last = last
                    self._answered = self._asked
                    self._state.notify_all()
        except Exception as error:  # noqa: BLE001 - the rest is sampled, whatever it is
            self._tell(Trouble("nvml", "", type(error).__name__, str(error)))
        finally:
            with self._state:
                self._over = True
                self._last = {}
                self._state.notify_all()
