"""How an invocation says no: in one line, before anything is on disk."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from sgmatrix.core.errors import SgmatrixError


def refuse(error: SgmatrixError) -> NoReturn:
    """Print the refusal alone, without Snakemake's frame around it, and end."""
    print(error, file=sys.stderr, flush=True)
    sys.exit(1)


def check_place(folder: Path) -> None:
    """Refuse a results folder that cannot be made or written; touches nothing.

    Raises:
        SgmatrixError: `results_unwritable`.
    """
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        return
    problem = "not writable" if place.is_dir() else "not a folder"
    raise unwritable(folder, f"{place} is {problem}")


def unwritable(folder: Path, problem: str) -> SgmatrixError:
    """Return the refusal of a results folder that cannot be used."""
    return SgmatrixError(
        "results_unwritable",
        f"{folder}: {problem}",
        fix="make it a writable folder, or run in another place with --directory",
    )
