"""Ask the engine's own Python, which has torch, and would take seconds to import here."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sgmatrix.core.environment import engine_environment
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
        answer = subprocess.run(
            [cell["python"], str(script), *map(str, arguments)],
            env={**engine_environment(cell["env"]), **extra},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_S,
            check=True,
            text=True,
        )
        return json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        told = getattr(error, "stderr", "") or str(error)
        raise SgmatrixError(
            "engine_missing", f"{name} of the probe failed: {told[-300:]}"
        ) from None
