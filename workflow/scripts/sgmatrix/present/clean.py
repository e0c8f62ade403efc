"""Text of foreign origin, made fit to be shown: no secret, no escape code, no control character.

`core.redact` masks values by the key that they lie under. A log line has no keys, so names
and values are looked for in its text. What cannot be known, it cannot mask: a secret that
stands in a sentence without its name.
"""

from __future__ import annotations

import re

from sgmatrix.core.redact import MASK, is_secret_name, redact_text

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# `api_key=`, `"api_key": `, `--api-key `, `Authorization: `
_NAME = re.compile(r"(?P<flag>--)?(?P<name>[A-Za-z_][\w-]*)(?:[\"']?\s*[=:]\s*|(?(flag)\s+|(?!)))")
_VALUE = re.compile(r"(?:Bearer|Basic)\s+\S+|\"[^\"]*\"|'[^']*'|[^\s,;)}\]]+")
# a number after `token` is a count, and `None` says that there is no secret
_NO_SECRET = re.compile(
    r"(?:None|null|true|false|\d{1,9}(?:\.\d*)?)[.%]?|\"\"|''|\*+", re.IGNORECASE
)


def clean(text: str) -> str:
    """Return the text without secrets, escape codes and control characters."""
    text = _CONTROLS.sub("", _ESCAPES.sub("", text))
    parts: list[str] = []
    at = 0
    for found in _NAME.finditer(text):
        value = _VALUE.match(text, found.end())
        if found.start() < at or value is None or not is_secret_name(found["name"]):
            continue
        if not _NO_SECRET.fullmatch(value[0]):
            parts += [text[at : found.end()], MASK]
            at = value.end()
    return redact_text("".join(parts) + text[at:])


def clean_tail(data: bytes, lines: int) -> str:
    """Return the last lines of a log, cleaned; a progress bar is its last state."""
    text = data.decode("utf-8", errors="replace").replace("\r\n", "\n")
    rows = [row.rstrip("\r").rsplit("\r", 1)[-1] for row in text.split("\n")]
    while rows and not rows[-1].strip():
        rows.pop()
    return "".join(clean(row).rstrip() + "\n" for row in rows[-lines:])
