"""The rows of `requests`: the files of the history in turn, each whole or not at all."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.schema_versions import read_dataset
from sgmatrix.dataset.history import Attempt

_AHEAD = 12
"""Files that are read while one is written: reading and writing share two CPUs well."""


def request_tables(attempts: Sequence[Attempt]) -> Iterator[pa.Table]:
    """Yield the requests of each point that has a record, in the order of the history.

    A file that is damaged, foreign or a copy is noted with its attempt.
    """
    with ThreadPoolExecutor(1) as reader:
        waiting: deque[tuple[Attempt, Path, Future[pa.Table | str]]] = deque()
        for attempt in attempts:
            for planned in attempt.spec["points"]:
                load_id = planned["load_id"]
                file = attempt.folder / "points" / f"{load_id}.requests.parquet"
                if attempt.point(load_id) is None or not file.is_file():
                    continue
                identity = {**attempt.identity, "load_id": load_id}
                waiting.append((attempt, file, reader.submit(_read, file, identity)))
                if len(waiting) > _AHEAD:
                    yield from _found(*waiting.popleft())
        while waiting:
            yield from _found(*waiting.popleft())


def _found(attempt: Attempt, file: Path, read: Future[pa.Table | str]) -> Iterator[pa.Table]:
    found = read.result()
    if isinstance(found, str):
        attempt.leave_out(file, found)
    else:
        yield found


def _read(file: Path, identity: dict[str, object]) -> pa.Table | str:
    """Return a file's requests, or why they are not those of that identity."""
    try:
        table = read_dataset(file, "requests")
    except SgmatrixError as error:
        return error.facts.removeprefix(f"{file} ")
    if why := another(table, identity):
        return why
    positions = table.column("request")
    if pc.count_distinct(positions).as_py() != table.num_rows:
        return "has the same request twice"
    return table


def another(table: pa.Table, identity: dict[str, object]) -> str | None:
    """Return how the rows of a table are not all of that identity; None: they are."""
    for name, own in identity.items():
        for theirs in pc.unique(table.column(name)).to_pylist():
            if theirs != own:
                return f"is of {name} {theirs}, not {own}: a copy"
    return None
