"""Argument lists, parsed by the engine that will get them, without a GPU and before any launch."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence

from sgmatrix.core.environment import engine_environment

_TIMEOUT_S = 300

# Runs in the engine's interpreter: reads lists of arguments, answers one error text or null each.
_CODE = """
import argparse, contextlib, io, json, sys
lists = json.load(sys.stdin)
with contextlib.redirect_stdout(sys.stderr):
    from sglang.srt.server_args import ServerArgs
    # an abbreviation would pass unseen by every check that knows flags by their names
    parser = argparse.ArgumentParser(prog="sglang", allow_abbrev=False)
    ServerArgs.add_cli_args(parser)
answers = []
for arguments in lists:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            parser.parse_args(arguments)
        answers.append(None)
    except SystemExit:
        answers.append(said.getvalue().strip().splitlines()[-1].split("error: ", 1)[-1])
print("ANSWERS " + json.dumps(answers))
"""


def parse_arguments(
    python: str, env: Mapping[str, str], lists: Sequence[Sequence[str]]
) -> list[str | None] | None:
    """Let an engine parse argument lists.

    Args:
        python: the engine's interpreter.
        env: what the campaign declares for it.
        lists: server arguments, without the interpreter and the module.

    Returns:
        The engine's refusal of each list, None where it accepts it; None in place of the whole
        where this engine cannot be asked (it does not import here, or is no such SGLang).
    """
    try:
        answer = subprocess.run(
            [python, "-c", _CODE],
            input=json.dumps([list(arguments) for arguments in lists]),
            env=engine_environment(env),
            cwd="/",
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
            text=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    for line in answer.stdout.splitlines():
        if line.startswith("ANSWERS "):
            answers: list[str | None] = json.loads(line.removeprefix("ANSWERS "))
            return answers
    return None
