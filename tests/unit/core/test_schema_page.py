"""The page of the datasets is in step with their schemas."""

from pathlib import Path

import pytest

from sgmatrix.core.schema_page import PAGE, page_text, unit_of
from sgmatrix.core.schema_versions import CURRENT, schema_of

PROJECT = Path(__file__).parents[3]


def test_the_page_is_that_of_the_schemas() -> None:
    assert (PROJECT / PAGE).read_text(encoding="utf-8") == page_text(), "run `make docs`"


def test_every_column_has_a_meaning() -> None:
    rows = [line.split(" | ") for line in page_text().splitlines() if line.startswith("| `")]
    assert len(rows) > 150
    bare = [row[0] for row in rows if not row[-1].strip(" |")]
    assert bare == []


@pytest.mark.parametrize("dataset", CURRENT)
def test_every_column_that_may_be_null_says_what_that_means(dataset: str) -> None:
    schema = schema_of(dataset, ["oea"])
    told = {f.name: (f.metadata or {}).get(b"null", b"").decode() for f in schema}
    silent = [f.name for f in schema if f.nullable and len(told[f.name]) < 2]
    wrong = [f.name for f in schema if not f.nullable and told[f.name]]
    assert (silent, wrong) == ([], [])


@pytest.mark.parametrize(
    ("column", "unit"),
    [
        ("ttft_ms_p99", "ms"),
        ("tpot_ms_mean", "ms"),
        ("output_tok_s", "tokens/s"),
        ("request_s", "requests/s"),
        ("goodput_request_s", "requests/s"),
        ("power_w_mean", "W"),
        ("power_idle_w", "W"),
        ("energy_j_per_output_tok", "J per token"),
        ("duration_s", "s"),
        ("weight_bytes", "bytes"),
        ("effect_percent", "%"),
        ("best_output_tok_s_low", "tokens/s"),
        ("gpu_memory_used_mib_max", "MiB"),
        ("validity", ""),
        ("good_share", ""),
        ("concurrency", ""),
    ],
)
def test_units_are_those_of_the_names(column: str, unit: str) -> None:
    assert unit_of(column) == unit
