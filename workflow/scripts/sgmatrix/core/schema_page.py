"""`docs/data.md`, made from the Arrow schemas: `python -m sgmatrix.core.schema_page`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sgmatrix.core import schemas
from sgmatrix.core.files import write_text
from sgmatrix.core.schema_versions import CURRENT, WITH_AXES, schema_of

PAGE = Path("docs/data.md")

_HEAD = """# Datasets

Every campaign has its tables in `results/<campaign>/datasets/`, each a Parquet file of one explicit
schema. They are made of the history, all attempts of it; `current` tells those that count.

| table | one row per |
|---|---|
@TABLES@

## Reading them

`results/*/datasets/<table>.parquet` are the files of all campaigns. `points` and `cells` have a
column per axis, so two campaigns may differ in those: the ways below give null for what one lacks.

```python
from glob import glob
import duckdb, pandas, polars, pyarrow, pyarrow.parquet

files = sorted(glob("results/*/datasets/points.parquet"))

pandas.concat([pandas.read_parquet(file, dtype_backend="pyarrow") for file in files])
pyarrow.concat_tables([pyarrow.parquet.read_table(f) for f in files], promote_options="default")
polars.concat([polars.read_parquet(file) for file in files], how="diagonal")
duckdb.sql("FROM read_parquet('results/*/datasets/points.parquet', union_by_name = true)")
```

What is trusted, of one campaign:

```python
points = pandas.read_parquet("results/demo/datasets/points.parquet")
trusted = points[points.current & (points.validity == "valid")]
trusted[["cell", "concurrency", "output_tok_s", "practical_ratio"]]
```

`cells` and `points` join by `campaign` and `cell`; `points` and `requests` by `campaign`, `cell`,
`launch`, `attempt` and `load_id`. `dtype_backend="pyarrow"` keeps whole numbers whole beside nulls.
No folder is named `key=value`: a cell `001` stays a text.

## What holds for all

- Units are in the names. A null is never 0; what it means stands with each column. Text is plain,
  also where it looks like something else (`001`, `NA`, `True`), and times are UTC.
- `sgmatrix.schema` in a file's metadata is the table and its version, as `points/3`;
  `sgmatrix.provenance` is JSON: campaign, number of attempts, harness versions, versions of the
  engines. The same history gives the same bytes.
- A version only adds columns. Files of older versions, in the history too, are read with nulls for
  the columns that they lack; those of a newer version are named and left out.
- A file of the history that is truncated, of another schema, a copy of another attempt's, or that
  has a value of another kind (text for a number, `NaN`) is left out as a whole.
  `results/<campaign>/left-out.json`, the log of `collect` and the terminal name it.
- All tables are written before the first gets its name: a full disk leaves the former ones.

What collecting costs is in [speed.md](speed.md).

This page is made from the schemas by `make docs`.
"""

_TABLES = (
    ("cells", "server configuration of the plan and the history"),
    ("points", "load point of an attempt, also failed ones"),
    ("requests", "request"),
    ("telemetry", "sample of one value"),
    ("ceilings", "point: what physics allows it"),
    ("experts", "layer and decode step of a probe: distinct experts"),
    ("comparisons", "pair of cells, metric and load point: the verdict"),
    ("comparison", "cell, load point and metric of two campaigns, in `results/compare/`"),
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


def unit_of(column: str) -> str:
    """Return the unit that a column's name says; empty for a count, a share or a text."""
    for name in ("_ms_mean", *(f"_ms_p{q}" for q in schemas.QUANTILES)):
        if column.endswith(name):
            return "ms"
    if column == "request_s":
        return "requests/s"
    if column.startswith("best_output_tok_s"):
        return "tokens/s"
    if column.endswith("_mib_max"):
        return "MiB"
    if column.endswith(("_w_mean", "_idle_w")):
        return "W"
    return next((unit for suffix, unit in _UNITS.items() if column.endswith(suffix)), "")


def _rows(name: str) -> Iterator[str]:
    yield "| column | type | unit | null means | meaning |"
    yield "|---|---|---|---|---|"
    for field in schema_of(name):
        told = {key.decode(): text.decode() for key, text in (field.metadata or {}).items()}
        null = _cell(told["null"]) if field.nullable else "never null"
        meaning = _cell(told["meaning"])
        yield f"| `{field.name}` | {field.type} | {unit_of(field.name)} | {null} | {meaning} |"
    if name in WITH_AXES:
        yield "| `axis_<name>` | string |  | the axis is not set | value of that axis |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def page_text() -> str:
    """Return the page."""
    tables = "\n".join(f"| [{name}](#{name}) | {what} |" for name, what in _TABLES)
    parts = [
        f"\n## {name}\n\nVersion {CURRENT[name]}: one row per {what}.\n\n"
        + "\n".join(_rows(name))
        + "\n"
        for name, what in _TABLES
    ]
    return _HEAD.replace("@TABLES@", tables) + "".join(parts)


def main() -> None:
    """Write the page below the working directory."""
    write_text(PAGE, page_text())


if __name__ == "__main__":
    main()
