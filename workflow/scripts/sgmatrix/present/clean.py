"""Text of foreign origin, made fit to be shown: no secret, no escape code, no control character.

Not here: what a secret is (`core.redact`).
"""

from __future__ import annotations

import re

from sgmatrix.core.redact import ESCAPES, redact_prose

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """Return the text without secrets, escape codes and control characters."""
    return redact_prose(_CONTROLS.sub("", ESCAPES.sub("", text)))


def clean_tail(data: bytes, lines: int) -> str:
    """Return the last lines of a log, cleaned; a progress bar is its last state."""
    text = data.decode("utf-8", errors="replace").replace("\r\n", "\n")
    rows = [row.rstrip("\r").rsplit("\r", 1)[-1] for row in text.split("\n")]
    while rows and not rows[-1].strip():
        rows.pop()
    return "".join(clean(row).rstrip() + "\n" for row in rows[-lines:])
