"""`docs/data.md`, made from the Arrow schemas: `python -m sgmatrix.core.schema_page`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from sgmatrix.core import schemas, schemas_ceiling, schemas_compare
from sgmatrix.core.files import write_text

PAGE = Path("docs/data.md")

_HEAD = """# Datasets

Every campaign has its tables in `results/<campaign>/datasets/`, each a Parquet file of one explicit
schema with its version and provenance in the metadata (`sgmatrix.schema`, `sgmatrix.provenance`).
They are made of the history, all attempts of it; `current` tells those that count. pandas, pyarrow,
polars and DuckDB read them:

```python
import pandas

points = pandas.read_parquet("results/demo/datasets/points.parquet")
trusted = points[points.current & (points.validity == "valid")]
trusted[["cell", "concurrency", "output_tok_s", "practical_ratio"]]
```

Units are in the names. A null was not measured or does not exist for that row; it is never 0. Text
is plain, times are UTC. This page is made from the schemas by `make docs`.
"""

_TABLES = (
    ("points", schemas.POINTS_VERSION, "one row per load point of an attempt, also failed ones"),
    ("requests", schemas.REQUESTS_VERSION, "one row per request"),
    ("telemetry", schemas.TELEMETRY_VERSION, "one row per sample of one value"),
    ("ceilings", schemas_ceiling.CEILINGS_VERSION, "what physics allows each point"),
    ("experts", schemas_compare.EXPERTS_VERSION, "distinct experts by decode step, of probes"),
    ("comparisons", schemas_compare.COMPARISONS_VERSION, "verdicts on pairs of cells"),
    (
        "comparison",
        schemas_compare.COMPARISON_VERSION,
        "two campaigns, a row per cell, load and metric; in `results/compare/<base>--<other>/`",
    ),
)

_UNITS = {
    "_ms": "ms",
    "_tok_s": "tokens/s",
    "_request_s": "requests/s",
    "_w": "W",
    "_j_per_output_tok": "J per token",
    "_bytes": "bytes",
    "_percent": "%",
    "_cores": "CPUs",
    "_s": "s",
}


def _schema(name: str) -> pa.Schema:
    known = {
        "points": schemas.points_schema([]),
        "requests": schemas.REQUESTS,
        "telemetry": schemas.TELEMETRY,
        "ceilings": schemas_ceiling.CEILINGS,
        "experts": schemas_compare.EXPERTS,
        "comparisons": schemas_compare.COMPARISONS,
        "comparison": schemas_compare.COMPARISON,
    }
    return known[name]


def unit_of(column: str) -> str:
    """Return the unit that a column's name says; empty for a count, a share or a text."""
    for name in ("_ms_mean", *(f"_ms_p{q}" for q in schemas.QUANTILES)):
        if column.endswith(name):
            return "ms"
    if column == "request_s":
        return "requests/s"
    if column.endswith(("_w_mean", "_idle_w")):
        return "W"
    return next((unit for suffix, unit in _UNITS.items() if column.endswith(suffix)), "")


def _rows(name: str) -> Iterator[str]:
    yield "| column | type | unit | null | meaning |"
    yield "|---|---|---|---|---|"
    for field in _schema(name):
        meaning = (field.metadata or {}).get(b"meaning", b"").decode().replace("|", "\\|")
        null = "yes" if field.nullable else "never"
        yield f"| `{field.name}` | {field.type} | {unit_of(field.name)} | {null} | {meaning} |"
    if name == "points":
        yield "| `axis_<name>` | string |  | yes | value of that axis; null: not set |"


def page_text() -> str:
    """Return the page."""
    parts = [
        f"\n## {name}\n\nVersion {version}: {what}.\n\n" + "\n".join(_rows(name)) + "\n"
        for name, version, what in _TABLES
    ]
    return _HEAD + "".join(parts)


def main() -> None:
    """Write the page below the working directory."""
    write_text(PAGE, page_text())


if __name__ == "__main__":
    main()
