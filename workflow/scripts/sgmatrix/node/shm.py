"""Shared memory that SGLang's processes leave in /dev/shm when they are killed.

SGLang names its segments `sgl_shm_<kind>_<pid>_<random>` and takes away none of a process that
was killed, which is how its own tree ends. In a container of 64 MiB the second server would
find no room, and die for a reason that is not its own. Standard library only.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection
from pathlib import Path

FOLDER = Path("/dev/shm")  # noqa: S108 - where the kernel keeps them
_SEGMENT = re.compile(r"sgl_shm_[A-Za-z0-9]+_(\d+)_[0-9a-f]+")


def remove_segments(pids: Collection[int]) -> int:
    """Remove the segments that those processes made; all of them must have ended.

    Returns:
        How many bytes that were.
    """
    removed = 0
    with contextlib.suppress(OSError):
        for path in FOLDER.iterdir():
            match = _SEGMENT.fullmatch(path.name)
            if match and int(match[1]) in pids:
                with contextlib.suppress(OSError):
                    size = path.stat().st_size
                    path.unlink()
                    removed += size
    return removed
