"""The table of keys in `docs/import.md`, made from the aliases.

    python -m sgmatrix.load.foreign.page     (with workflow/scripts on PYTHONPATH; `make docs`)

A test keeps the page in step.
"""

from __future__ import annotations

from pathlib import Path

from sgmatrix.core.files import write_text
from sgmatrix.load.foreign.aliases import ALIASES, Alias

PAGE = Path("docs/import.md")
_BEGIN, _END = "<!-- keys: made by make docs -->\n", "<!-- keys end -->\n"
_GENAI = "aggregated_metrics."


def _cell(aliases: list[Alias]) -> str:
    words = []
    for alias in aliases:
        key = alias.key.removeprefix(_GENAI)
        times = f" ({alias.unit.name})" if alias.unit.factor != 1 else ""
        fork = " (fork)" if alias.tools == ("sglang fork",) else ""
        words.append(f"`{key}`{times}{fork}")
    return ", ".join(words)


def keys_table() -> str:
    """Return the table: a line per column, the keys of each tool in the order they are tried."""
    lines = ["| column | SGLang and forks | vLLM | genai-bench |", "|---|---|---|---|"]
    for column in dict.fromkeys(alias.column for alias in ALIASES):
        cells = [
            _cell([alias for alias in ALIASES if alias.column == column and tool in alias.tools])
            for tool in ("sglang fork", "vllm", "genai-bench")
        ]
        lines.append(f"| `{column}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def with_table(text: str) -> str:
    """Return the page with the table of today."""
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{keys_table()}\n{_END}{after}"


if __name__ == "__main__":
    write_text(PAGE, with_table(PAGE.read_text(encoding="utf-8")))
