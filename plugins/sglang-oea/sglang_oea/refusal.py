"""How the plug-in says no: one line, and the end of the process.

SGLang's plug-in loader logs and swallows `Exception`, so an error would leave a server that
runs without OEA. `SystemExit` is not swallowed.
"""

from __future__ import annotations

import os
import signal
import sys

MARK = "sglang-oea: refused:"
"""What a refusal's line begins with, in the server's log."""


class Refused(SystemExit):
    """The plug-in will not run like this; `text` says why and what mends it."""

    def __init__(self, text: str, *, fix: str) -> None:
        super().__init__(1)
        self.text = f"{MARK} {text}; fix: {fix}"

    def __str__(self) -> str:
        return self.text


def refuse(text: str, *, fix: str, serving: bool = False) -> None:
    """Print the line to stderr and raise `Refused`.

    Args:
        text: what is wrong, with the value that was found.
        fix: what mends it.
        serving: in a scheduler rank also signal the launcher, as SGLang itself does when a
            rank fails, since threads may keep a rank from ending by itself.

    Raises:
        Refused: always.
    """
    refusal = Refused(text, fix=fix)
    print(refusal.text, file=sys.stderr, flush=True)  # noqa: T201 - the log of the server
    if serving:
        os.kill(os.getppid(), signal.SIGQUIT)
    raise refusal
