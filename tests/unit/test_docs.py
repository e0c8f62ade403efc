"""The pages name what the code knows."""

from pathlib import Path

import pytest

from sgmatrix.core.flags import flags_of
from sgmatrix.core.reasons import REASONS
from sgmatrix.load.foreign.page import keys_table, with_table

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("name", REASONS)
def test_every_reason_has_its_line(name):
    lines = (DOCS / "failures.md").read_text().splitlines()

    (line,) = [line for line in lines if line.startswith(f'| <a id="{name}"></a>')]
    assert line.endswith(f"| {REASONS[name].help} |")


@pytest.mark.parametrize(
    "name", ["partial", "length_mismatch", "implausible", "cache_hits", "cold"]
)
def test_every_flag_that_is_found_today_says_what_it_bars(name):
    text = (DOCS / "metrics.md").read_text()

    assert f"| `{name}` |" in text
    assert flags_of(name)[0].bars == {"throughput", "latency"}


def test_the_table_of_imported_keys_is_the_one_of_the_code():
    text = (DOCS / "import.md").read_text()

    assert with_table(text) == text, "run `make docs`"
    assert keys_table() in text
