"""The lease of a node's devices: one lock file each, all or nothing, freed by the kernel.

The lock folder is shared by all campaigns of the machine. A lock is held by an open file of
the warden; when the warden ends, however it ends, the kernel lets go of it.
Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any


def lease_folder() -> Path:
    """Return the lock folder of this machine, open to all its users."""
    # not TMPDIR, which differs between users and jobs of one machine
    folder = Path(os.environ.get("SGMATRIX_LEASES") or "/tmp/sgmatrix-leases")  # noqa: S108
    try:
        folder.mkdir(mode=0o1777)
        folder.chmod(0o1777)  # mkdir obeys the umask
    except FileExistsError:
        pass
    return folder


def device_names(gpus: int, total: int) -> list[str]:
    """Return the devices that a server of so many GPUs may be given; `cpu` for none."""
    if gpus == 0:
        return ["cpu"]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")  # an allocation says which ones are ours
    names = map(str, range(total)) if visible is None else visible.split(",")
    return [f"gpu-{name}" for name in dict.fromkeys(n.strip() for n in names) if name]


@dataclass
class Lease:
    """Devices that this process holds."""

    devices: list[str]
    files: list[IO[str]]
    warning: str = ""
    """What an earlier holder noted of these devices: that its server did not go away."""

    def note_failed_drain(self, note: Mapping[str, Any], detail: str) -> None:
        """Leave word for the next holder that a server here did not go away."""
        text = f"{note['cell']} of campaign {note['campaign']} did not leave them empty: {detail}"
        for file in self.files:
            file.seek(0)
            file.truncate()
            file.write(json.dumps({**note, "drain_failed": text}))
            file.flush()

    def release(self) -> None:
        for file in self.files:
            file.close()


def try_lease(
    candidates: Sequence[str],
    wanted: int,
    note: dict[str, Any],
    locks: Mapping[str, str] | None = None,
) -> Lease | list[Any]:
    """Take `wanted` of the candidates at once, or none.

    Args:
        candidates: names of devices.
        wanted: how many of them.
        note: what others may read of the holder.
        locks: name of the lock of each device, where it is not the device's own: a GPU has one
            lock, whether it is called by its index or by its UUID.

    Returns:
        The lease, or the notes of those who hold what is missing.
    """
    folder = lease_folder()
    held: list[str] = []
    files: list[IO[str]] = []
    blockers: list[Any] = []
    with _open(folder / "gate.lock") as gate:
        try:  # one taker at a time, so two never hold half each
            fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return []  # asked again soon
        for device in candidates:
            file = _open(folder / f"{(locks or {}).get(device, device)}.lock")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                with contextlib.suppress(ValueError):
                    blockers.append(json.loads(file.read() or "null"))
                file.close()
                continue
            held.append(device)
            files.append(file)
            if len(held) == wanted:
                break
        if len(held) < wanted:
            for file in files:
                file.close()
            return [note for note in blockers if note]
        warning = next(filter(None, map(_failed_drain, files)), "")
        for file in files:
            file.seek(0)
            file.truncate()
            file.write(json.dumps(note))
            file.flush()
    return Lease(held, files, warning)


def _failed_drain(file: IO[str]) -> str:
    """Return what the former holder of a device noted about its end."""
    file.seek(0)
    with contextlib.suppress(ValueError):
        note = json.loads(file.read() or "null")
        if isinstance(note, dict):
            return str(note.get("drain_failed", ""))
    return ""


def _open(path: Path) -> IO[str]:
    """Open a lock file that other users of the machine may have made."""
    try:
        # without O_CREAT: fs.protected_regular refuses it for another user's file in such a folder
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    with contextlib.suppress(PermissionError):
        os.fchmod(descriptor, 0o666)
    return os.fdopen(descriptor, "r+")
