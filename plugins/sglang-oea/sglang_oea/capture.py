"""Keeps the proof's reader off the device while a CUDA graph is captured.

A copy to the host from another thread would invalidate a capture. Every capture in torch goes
through CUDAGraph.capture_begin and capture_end, whichever runner of SGLang makes it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

BEGIN = "torch.cuda.CUDAGraph.capture_begin"
END = "torch.cuda.CUDAGraph.capture_end"


class CaptureGuard:
    """A lock that a capture holds from its begin to its end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held = False

    def around_begin(self, original: Callable[..., Any], *args: Any, **kw: Any) -> Any:
        """AROUND capture_begin: wait for a reader (microseconds), then keep readers out."""
        self._lock.acquire()  # let go of at the capture's end
        self._held = True
        try:
            return original(*args, **kw)
        except BaseException:
            self._release()
            raise

    def around_end(self, original: Callable[..., Any], *args: Any, **kw: Any) -> Any:
        """AROUND capture_end."""
        try:
            return original(*args, **kw)
        finally:
            self._release()

    def _release(self) -> None:
        if self._held:
            self._held = False
            self._lock.release()

    @contextmanager
    def outside_capture(self) -> Iterator[bool]:
        """Yield whether the device may be read now; no capture begins meanwhile."""
        free = self._lock.acquire(blocking=False)
        try:
            yield free
        finally:
            if free:
                self._lock.release()
