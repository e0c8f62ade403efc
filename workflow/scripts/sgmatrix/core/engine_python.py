"""Ask an engine's own interpreter: it has packages that ours lacks, or would load for seconds."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sgmatrix.core.environment import engine_environment


def ask_python(
    python: str,
    arguments: Sequence[object],
    env: Mapping[str, str],
    *,
    extra: Mapping[str, str] | None = None,
    limit_s: float = 60.0,
    first: Callable[[], object] | None = None,
) -> Any:
    """Return the JSON that an interpreter prints.

    Args:
        python: the interpreter.
        arguments: behind it.
        env: what the campaign declares for the engine.
        extra: environment beside that.
        limit_s: after which it is ended.
        first: called in its process before it begins.

    Raises:
        OSError: when it cannot be run, fails, takes too long or prints no JSON; with the end of
            what it said.
    """
    try:
        answer = subprocess.run(
            [python, *map(str, arguments)],
            env={**engine_environment(env), **(extra or {})},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit_s,
            check=True,
            text=True,
            preexec_fn=first,
        )
        return json.loads(answer.stdout)
    except (subprocess.SubprocessError, ValueError) as error:
        said = str(getattr(error, "stderr", None) or "").strip()
        raise OSError(said[-300:] or str(error)) from None
