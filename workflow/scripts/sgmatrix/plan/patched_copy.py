"""A copy of an engine's package with edits in it: what it holds, and how it is made.

The installation is never touched: its package `sglang` is copied into the user's cache folder,
under a name made of its contents and of the edits, and comes first on the server's PYTHONPATH.
Standard library only, since a launch job makes the copy where the server runs.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sgmatrix.core.environment import engine_environment
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import package_files, read_json_or_none, write_json

_PROBE = "import importlib.util as u; print(u.find_spec('sglang').origin)"
_PROBE_TIMEOUT_S = 60
_MARKS = "files.json"
"""Beside the package: what the copy was when it was made."""


@dataclass(frozen=True)
class PatchedCopy:
    """A copy of an engine's package with edits in it."""

    source: str
    """Folder of the package `sglang` that is copied."""
    folder: str
    """Folder that holds the copy; it comes first on PYTHONPATH."""
    edits: tuple[Mapping[str, Any], ...]
    """Each with `where` (its place in the campaign), `file`, `find`, `replace`, `count`."""

    @property
    def package(self) -> Path:
        return Path(self.folder) / "sglang"

    def record(self) -> dict[str, Any]:
        """Return it as JSON data, for `plan.json`."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> PatchedCopy:
        return cls(record["source"], record["folder"], tuple(record["edits"]))


def edited(package: Path, edits: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """Return {file: (text before, text after)} of all edits, each checked against the files.

    Raises:
        SgmatrixError: `config_rejected` when a file is not there, the text to find does not stand
            there as often as said, the edit could not be taken back, or the result is no Python.
    """
    texts: dict[str, tuple[str, str]] = {}
    for edit in edits:
        file = edit["file"]
        if file not in texts:
            before = _read(package, edit)
            texts[file] = (before, before)
        before, text = texts[file]
        texts[file] = (before, apply_edit(text, edit))
    for file, (_, after) in texts.items():
        if file.endswith(".py"):
            try:
                ast.parse(after)
            except SyntaxError as error:
                raise SgmatrixError(
                    "config_rejected",
                    f"patches: {file} is no Python any more, line {error.lineno}: {error.msg}",
                    fix="correct `replace`, with its indentation",
                ) from None
    return texts


def apply_edit(text: str, edit: Mapping[str, Any]) -> str:
    """Return the text with one edit made.

    Raises:
        SgmatrixError: `config_rejected` when it does not fit, or could not be taken back.
    """
    found = text.count(edit["find"])
    if found != edit["count"]:
        raise SgmatrixError(
            "config_rejected",
            f"{edit['where']}: `find` stands {found} times in {edit['file']}, "
            f"count = {edit['count']}",
            fix="give more of the lines around it, or the right count",
        )
    after = text.replace(edit["find"], edit["replace"])
    if after.replace(edit["replace"], edit["find"]) != text:
        raise SgmatrixError(
            "config_rejected",
            f"{edit['where']}: could not be taken back, `replace` stands elsewhere in "
            f"{edit['file']} too",
            fix="make `replace` unique, for example with a comment in it",
        )
    return str(after)


def _read(package: Path, edit: Mapping[str, Any]) -> str:
    path = package.parent / str(edit["file"])
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SgmatrixError(
            "config_rejected",
            f"{edit['where']}.file = {edit['file']}: "
            f"{getattr(error, 'strerror', None) or 'is no text'}",
            fix="name a text file of the installed engine",
        ) from None


def patch_diff(copy: PatchedCopy) -> str:
    """Return what the edits change as one unified diff."""
    lines: list[str] = []
    for file, (before, after) in edited(Path(copy.source), copy.edits).items():
        lines += difflib.unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            f"a/{file}",
            f"b/{file}",
        )
    return "".join(lines)


def provide(copy: PatchedCopy, python: str, env: Mapping[str, str]) -> None:
    """Make the copy where it is not there yet, and see that the engine imports it.

    Args:
        copy: what is wanted.
        python: the engine's interpreter.
        env: declared environment of the server, with the copy on PYTHONPATH.

    Raises:
        SgmatrixError: `config_rejected` when an edit no longer fits, `engine_missing` when the
            engine would import another package.
    """
    folder = Path(copy.folder)
    with _alone(folder):
        if folder.is_dir() and read_json_or_none(folder / _MARKS) != _marks(copy.package):
            shutil.rmtree(folder)  # somebody changed it, or a cleaner took files out of it
        if not folder.is_dir():
            _make(copy, folder)
    try:
        answer = subprocess.run(
            [python, "-c", _PROBE],
            env=engine_environment(env),
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
            text=True,
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        answer = str(error)
    if answer != str(copy.package / "__init__.py"):
        raise SgmatrixError(
            "engine_missing",
            f"{python} imports sglang from {answer or 'nowhere'}, not from the patched copy "
            f"{copy.package}",
            fix="install sglang as a plain package; an editable one comes before PYTHONPATH",
        )


def _make(copy: PatchedCopy, folder: Path) -> None:
    after = {f: text for f, (_, text) in edited(Path(copy.source), copy.edits).items()}
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as temporary:
        whole = Path(temporary) / "copy"
        shutil.copytree(copy.source, whole / "sglang", symlinks=True)
        for file, text in after.items():
            path = whole / file
            path.unlink()  # a link, or hard linked by a package manager
            path.write_bytes(text.encode())
            original = (Path(copy.source).parent / file).stat()
            # a time of its own, so that compiled code of the original does not count for it
            os.utime(path, ns=(original.st_atime_ns, original.st_mtime_ns + 1_000_000_000))
        write_json(whole / _MARKS, _marks(whole / "sglang"))
        whole.rename(folder)


def _marks(package: Path) -> list[list[object]]:
    """Return name, size and time of each file of a copy, but for what Python compiles itself."""
    return [
        [file.relative_to(package).as_posix(), (stat := file.lstat()).st_size, stat.st_mtime_ns]
        for file in package_files(package)
    ]


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time make a copy; the kernel frees the lock."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def python_path(folders: Sequence[str]) -> str:
    """Return a PYTHONPATH of those folders, without the empty ones."""
    return os.pathsep.join(folder for folder in folders if folder)
