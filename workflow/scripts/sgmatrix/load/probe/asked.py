"""Scripts of this folder, run by the engine's own Python, which has torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sgmatrix.core.engine_python import ask_python
from sgmatrix.core.errors import SgmatrixError

_LIMIT_S = 120.0


def ask_engine(
    cell: Mapping[str, Any], name: str, arguments: Sequence[object], extra: Mapping[str, str]
) -> Any:
    """Return the JSON that a script of this folder prints, run by the engine's interpreter.

    Args:
        cell: the cell, of `plan.json`.
        name: of the script.
        arguments: of the script.
        extra: environment beside the engine's.

    Raises:
        SgmatrixError: `engine_missing` when it prints none.
    """
    script = Path(__file__).with_name(name)
    try:
        return ask_python(
            cell["python"], [script, *arguments], cell["env"], extra=extra, limit_s=_LIMIT_S
        )
    except OSError as error:
        raise SgmatrixError("engine_missing", f"{name} of the probe failed: {error}") from None
