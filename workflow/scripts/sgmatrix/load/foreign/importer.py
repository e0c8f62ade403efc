"""Files of other tools to one table, written whole or not at all, never over another file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from sgmatrix.core.errors import Refusal, SgmatrixError
from sgmatrix.core.files import replacing
from sgmatrix.core.parquet import table_from_rows, write_parquet
from sgmatrix.core.schemas import with_metadata
from sgmatrix.core.schemas_references import REFERENCES, REFERENCES_VERSION
from sgmatrix.load.foreign.reader import Found, read_file, results
from sgmatrix.load.foreign.row import reference_row

SUFFIXES = (".parquet", ".csv")


def import_results(files: Sequence[Path], asked: int | None = None) -> pa.Table:
    """Return one row per result of the files, in their order.

    Args:
        files: results of SGLang's, vLLM's or genai-bench's client.
        asked: requests that each run was asked for, where its tool does not say so.

    Raises:
        Refusal: `result_unreadable`, with one line per file or result that cannot be taken.
    """
    found: list[Found] = []
    problems: list[str] = []
    digests: dict[str, str] = {}
    for file in files:
        try:
            data = read_file(file)
            name = os.fsencode(file).decode("utf-8", "replace")  # a column holds UTF-8 only
            digests[name] = hashlib.sha256(data).hexdigest()
            found += results(name, data)
        except SgmatrixError as refusal:
            problems.append(_line(refusal))
    rows = []
    for one in found:
        try:
            rows.append(reference_row(one, asked))
        except SgmatrixError as refusal:
            problems.append(_line(refusal))
    if problems:
        raise Refusal("result_unreadable", problems)
    schema = with_metadata(REFERENCES, "references", REFERENCES_VERSION, {"files": digests})
    return table_from_rows(rows, schema)


def _line(refusal: SgmatrixError) -> str:
    return f"{refusal.facts}; fix: {refusal.fix}"


def check_target(target: Path, sources: Sequence[Path], *, force: bool) -> None:
    """Refuse a name that no table can have, or that a file has already; touches nothing.

    Args:
        target: file to write.
        sources: files that are read and never replaced, whatever is forced.
        force: whether another file there may be replaced.

    Raises:
        SgmatrixError: `results_unwritable`.
    """
    if target.suffix not in SUFFIXES:
        allowed = " or ".join(SUFFIXES)
        raise _unwritable(target, f"ends in {target.suffix or 'nothing'}", f"name it {allowed}")
    try:
        folder, there = target.is_dir(), target.exists()
        source = any(target.resolve() == source.resolve() for source in sources)
    except OSError as problem:
        raise _failed(target, problem) from problem
    if folder:
        raise _unwritable(target, "is a folder", "name a file")
    if source:
        raise _unwritable(target, "is one of the files to import", "choose another name")
    if there and not force:
        raise _unwritable(target, "is already there", "choose another name, or --force")


def write_references(table: pa.Table, target: Path) -> None:
    """Write the table as Parquet or CSV, by the suffix; what stands there is replaced.

    Raises:
        SgmatrixError: `results_unwritable` when it cannot be written.
    """
    try:
        if target.suffix == ".parquet":
            write_parquet(table, target)
        else:
            _write_csv(table, target)
    except OSError as problem:
        raise _failed(target, problem) from problem


def _write_csv(table: pa.Table, target: Path) -> None:
    import pyarrow.csv as pa_csv

    with replacing(target) as neighbour:
        pa_csv.write_csv(table, neighbour)


def _failed(target: Path, problem: OSError) -> SgmatrixError:
    why = problem.strerror or str(problem)
    return _unwritable(target, why, "choose a place that can be written")


def _unwritable(target: Path, problem: str, fix: str) -> SgmatrixError:
    return SgmatrixError("results_unwritable", f"{target}: {problem}", fix=fix)
