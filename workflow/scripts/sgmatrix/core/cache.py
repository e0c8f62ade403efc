"""Answers that are slow to get and never change for the same key, kept in the user's cache folder.

A cache that cannot be read or written is no fault: the answer is then computed again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sgmatrix.core.files import read_json_or_none, write_json


def cache_folder() -> Path:
    """Return the folder of this user's cached answers."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sgmatrix"


def cached(kind: str, key: str, compute: Callable[[], Any]) -> Any:
    """Return the JSON answer of that key, from the cache or computed; None is not kept."""
    path = cache_folder() / kind / f"{key}.json"
    known = read_json_or_none(path)
    if known is not None:
        return known
    answer = compute()
    if answer is not None:
        with contextlib.suppress(OSError):
            write_json(path, answer)
    return answer
