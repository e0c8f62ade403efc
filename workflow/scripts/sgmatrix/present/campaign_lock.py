"""One invocation at a time on a campaign; the kernel frees the lock, also after a SIGKILL."""

from __future__ import annotations

import fcntl
import os
from typing import IO

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.layout import Layout


def is_running(layout: Layout) -> bool:
    """Tell whether another invocation holds the campaign's lock."""
    try:
        with (layout.root / ".lock").open("a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # there is no such campaign yet
    return False


def take_lock(layout: Layout, campaign: str) -> IO[str]:
    """Return the lock of a campaign, held as long as the file is open.

    Raises:
        SgmatrixError: `campaign_running` when another invocation holds it.
    """
    lock = (layout.root / ".lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "?"
        raise SgmatrixError(
            "campaign_running",
            f"campaign {campaign} is run by another Snakemake, pid {holder}",
            fix="wait for it to end, or end it",
        ) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock
