"""Files that are complete or not there: neighbour file, fsync, rename.

JSON is strict: NaN and infinity are refused, so that a missing number can only be null.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a neighbour file to fill; give it the name `path` only if the block ends well."""
    with replacing_all([path]) as (neighbour,):
        yield neighbour


@contextlib.contextmanager
def replacing_all(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield neighbour files to fill; none gets its name before all of them are on the disk."""
    neighbours: list[Path] = []
    try:
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            neighbours.append(_neighbour(path))
        yield neighbours
        for neighbour in neighbours:
            _finish(neighbour)
        for neighbour, path in zip(neighbours, paths, strict=True):
            neighbour.replace(path)
    except BaseException:
        for neighbour in neighbours:
            neighbour.unlink(missing_ok=True)  # pyarrow may have removed it already
        raise


def _neighbour(path: Path) -> Path:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    os.close(descriptor)
    return Path(name)


def _finish(neighbour: Path) -> None:
    umask = os.umask(0)
    os.umask(umask)
    neighbour.chmod(0o666 & ~umask)  # mkstemp leaves 0600
    with neighbour.open("rb") as handle:
        os.fsync(handle.fileno())


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path) as neighbour:
        neighbour.write_text(text, encoding="utf-8")


def write_json(path: Path, data: Any) -> None:
    """Write strict JSON with sorted keys, whole or not at all.

    Raises:
        ValueError: when a number is not finite; a missing number is None.
    """
    write_text(path, json.dumps(data, indent=1, sort_keys=True, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def read_json_or_none(path: Path) -> Any:
    """Read a JSON file; None when it is absent or no JSON."""
    try:
        return read_json(path)
    except (OSError, ValueError):
        return None


def publish(source: Path, target: Path) -> None:
    """Copy a finished file to where others look for it, whole or not at all."""
    with replacing(target) as neighbour:
        shutil.copyfile(source, neighbour)


def package_files(package: Path) -> list[Path]:
    """Return the files of a Python package that can change what it does: not compiled ones."""
    return sorted(
        Path(folder, name)
        for folder, _, names in os.walk(package)
        if not folder.endswith("__pycache__")
        for name in names
        if not name.endswith(".pyc")
    )


def append_line(path: Path, line: str) -> None:
    """Append one short line in a single write, so that lines of many processes do not mix."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(descriptor, (line + "\n").encode())
    finally:
        os.close(descriptor)
