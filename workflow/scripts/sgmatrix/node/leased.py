"""Devices for a job that measures itself, without a warden: leased, looked at, given back empty.

Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sgmatrix.core.clock import now_utc
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.node import gpus, proc
from sgmatrix.node.launch import OWNER_VARIABLE, refuse_when_orphaned, refuse_when_stopped
from sgmatrix.node.lease import Lease, device_names, try_lease
from sgmatrix.node.leftovers import end_leftovers

_POLL_S = 0.05


@contextlib.contextmanager
def leased_devices(
    wanted: int,
    *,
    node: Mapping[str, Any],
    stop_s: float,
    note: Mapping[str, Any],
    waiting: Callable[[list[Any]], None],
) -> Iterator[list[str]]:
    """Hold so many GPUs, or the CPU for none, while the block runs; empty before and after.

    Args:
        wanted: GPUs.
        node: `node` of the campaign.
        stop_s: how long leftovers may take to end, and memory to come back.
        note: `campaign` and `cell`: what others may read of the holder.
        waiting: told who holds the devices, whenever that changes.

    Raises:
        SgmatrixError: when the node is not free, or the campaign is being stopped.
    """
    names = device_names(wanted, node["gpus"])
    if wanted > len(names):
        raise SgmatrixError(
            "gpu_busy",
            f"the campaign needs {wanted} GPUs, {len(names)} are there: {names}",
            fix="give the campaign more in CUDA_VISIBLE_DEVICES, or take out the cell",
        )
    mine = {**note, "pid": os.getpid(), "since": now_utc()}
    lease = _taken(names, wanted, mine, waiting)
    try:
        end_leftovers(stop_s)
        baseline = gpus.check_gpus(
            lease.devices,
            count=min(len(names), node["gpus"]),
            idle_memory_mib=node["idle_memory_mib"],
        )
        yield lease.devices
        drained = gpus.await_drained(baseline, deadline_s=stop_s)
        if not drained.ok:
            lease.note_failed_drain(mine, drained.detail)
            raise SgmatrixError("drain_failed", drained.detail)
    finally:
        lease.release()


def _taken(
    names: list[str], wanted: int, note: dict[str, Any], waiting: Callable[[list[Any]], None]
) -> Lease:
    locks = gpus.lock_names(names)
    said: list[Any] = []
    while True:
        refuse_when_stopped()
        refuse_when_orphaned()
        answer = try_lease(names, max(wanted, 1), note, locks)
        if isinstance(answer, Lease):
            return answer
        if answer and answer != said:
            said = answer
            waiting(answer)
        time.sleep(_POLL_S)


def end_with_owner() -> None:
    """Let this job end when the Snakemake process does, however that goes."""
    text = os.environ.get(OWNER_VARIABLE)
    if not text:
        return
    owner = proc.open_pidfd(proc.Identity(**json.loads(text)))
    if owner is None:
        raise SgmatrixError("interrupted", "the Snakemake process is gone")

    def watch() -> None:
        select.select([owner], [], [])
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
