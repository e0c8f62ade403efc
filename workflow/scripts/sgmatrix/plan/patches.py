"""Named edits of an engine, as axis values with provenance."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sgmatrix.core.cache import cache_folder
from sgmatrix.core.hashing import digest
from sgmatrix.plan.parts import Patch
from sgmatrix.plan.patched_copy import PatchedCopy, edited


def patch_hash(patch: Patch) -> str:
    """Return the sha256 of what a patch does; its name and reason do not count."""
    return digest([edit.model_dump() for edit in patch.edits])


def planned_copy(package: Path, contents: str, patches: Mapping[str, Patch]) -> PatchedCopy:
    """Return the copy that a cell will run; nothing is written.

    Args:
        package: folder of the installed package `sglang`.
        contents: hash of its files.
        patches: patches by name, in the order in which they are made.

    Raises:
        SgmatrixError: `config_rejected` when an edit does not fit the installed files.
    """
    edits = tuple(
        {"where": f"patches.{name}.edits[{i}]", **edit.model_dump()}
        for name, patch in patches.items()
        for i, edit in enumerate(patch.edits)
    )
    edited(package, edits)
    key = digest([contents, [patch_hash(patch) for patch in patches.values()]])
    return PatchedCopy(str(package), str(cache_folder() / "patched" / key[:32]), edits)
