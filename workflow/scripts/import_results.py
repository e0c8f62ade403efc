"""Import results of SGLang's, vLLM's and genai-bench's clients as one table.

    .venv/bin/python workflow/scripts/import_results.py FILE... --to references.parquet

Exit code 0: written. 1: refused, nothing is written, each line says what and why. 2: usage.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="JSON or JSONL")
    parser.add_argument("--to", required=True, type=Path, metavar="OUT", help=".parquet or .csv")
    parser.add_argument("--force", action="store_true", help="replace OUT where it is there")
    parser.add_argument(
        "--asked",
        type=int,
        metavar="N",
        help="requests that each run was asked for; SGLang's result lines do not say it",
    )
    given = parser.parse_args(words)
    if given.asked is not None and given.asked < 1:
        parser.error("--asked is a number of requests, 1 or more")
    return given


def main(words: Sequence[str] | None = None) -> int:
    given = _arguments(words)
    from sgmatrix.core.errors import SgmatrixError
    from sgmatrix.load.foreign.importer import check_target, import_results, write_references

    try:
        check_target(given.to, given.files, force=given.force)
        table = import_results(given.files, given.asked)
        write_references(table, given.to)
    except SgmatrixError as refusal:
        print(refusal, file=sys.stderr)
        return 1
    flagged = sum(one not in ("valid", None) for one in table["validity"].to_pylist())
    failed = table["status"].to_pylist().count("failed")
    print(f"{given.to}: {table.num_rows} results, {failed} failed, {flagged} flagged")
    return 0


if __name__ == "__main__":
    sys.exit(main())
