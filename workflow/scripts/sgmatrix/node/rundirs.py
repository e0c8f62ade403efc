"""The private folder of each launch: made by its job, kept by its warden, removed at the end.

A warden that was killed could not remove its own; the next launch does it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import time
from pathlib import Path

from sgmatrix.core.files import read_json
from sgmatrix.node import proc

_PREFIX = "sgmatrix-run-"
_YOUNG_S = 3600.0
"""Until when a folder is let be: a job of another container looks dead from here."""


def make_run_dir() -> Path:
    """Return a new folder that only this user can look into."""
    return Path(tempfile.mkdtemp(prefix=_PREFIX))


def remove_abandoned() -> None:
    """Remove the folders of this user whose job and warden are both gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # not one of ours
            about = folder.stat()
            old = time.time() - about.st_mtime > _YOUNG_S
            if old and about.st_uid == os.getuid() and _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    if proc.Identity(**read_json(folder / "spec.json")["job"]).alive():
        return False  # it may be about to start the warden
    return not _is_read(folder / "control")


def _is_read(pipe: Path) -> bool:
    """Tell whether a warden listens to its pipe."""
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        return error.errno not in (errno.ENXIO, errno.ENOENT)
    return True
