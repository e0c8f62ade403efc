"""The table of keys: units, one meaning per key, and only columns that there are."""

import pytest

from sgmatrix.core.schemas_references import REFERENCES
from sgmatrix.load.foreign.aliases import ALIASES, RANGES, REQUIRED, range_of, table

TOOLS = ("sglang", "sglang fork", "vllm", "genai-bench")


def test_every_column_of_the_table_is_one_of_the_schema():
    assert {alias.column for alias in ALIASES} <= set(REFERENCES.names)
    assert {name for name in RANGES if not name.endswith("_ms")} <= set(REFERENCES.names)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_key_of_a_tool_is_one_column(tool):
    keys = [alias.key for alias in ALIASES if tool in alias.tools]

    assert len(set(keys)) == len(keys)
    assert set(REQUIRED) <= table(tool).keys()


def test_a_latency_in_seconds_is_multiplied_and_one_in_ms_is_not():
    factors = {(a.unit.name, a.unit.factor) for a in ALIASES if "_ms_" in a.column}

    assert factors == {("ms", 1.0), ("s", 1000.0)}
    assert {a.tools for a in ALIASES if "_ms_" in a.column and a.unit.name == "s"} == {
        ("genai-bench",)
    }


def test_a_key_that_ends_in_ms_is_a_latency_in_ms():
    named = [alias for alias in ALIASES if alias.key.endswith("_ms")]

    assert {"mean_ttft_ms", "median_tpot_ms", "p99_itl_ms", "p90_e2e_latency_ms"} <= {
        alias.key for alias in named
    }
    assert all(alias.unit.name == "ms" and "_ms_" in alias.column for alias in named)


@pytest.mark.parametrize(
    ("column", "want"),
    [
        ("ttft_ms_p99", RANGES["ttft_ms"]),
        ("itl_ms_mean", RANGES["itl_ms"]),
        ("duration_s", RANGES["duration_s"]),
        ("output_tok_s", RANGES["output_tok_s"]),
        ("tool", None),
        ("completed", None),
    ],
)
def test_a_range_is_that_of_all_statistics_of_a_latency(column, want):
    assert range_of(column) == want
