"""Secrets that a server wrote to its log, masked where they stand once it has ended.

Each line keeps its length in bytes, so that places in the log that were noted while it grew, as
the begin and the end of a load point, stay what they are.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sgmatrix.core.redact import (
    ESCAPES,
    MASK,
    redact_prose,
    redact_text,
    secrets_of_environment,
)

_LONGEST = 1 << 20
"""Bytes of a line that are looked at together."""
_BATCH = re.compile(rb"(?:Prefill|Decode) batch\b")
"""What a server writes all day long: counts, no names of secrets."""
_KEY_BEGINS = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----(?!.*-----END )")
_KEY_ENDS = b"-----END "
_KEY_LINES = 200
"""A longer private key is none."""
_VALUES = (
    *(b"hf_", b"sk-", b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_", b"glpat-"),
    *(b"akia", b"asia", b"nvapi-", b"xox", b"eyj", b"bearer", b"private", b"://", b"\x1b"),
)
_NAMES = (b"key", b"secret", b"passw", b"passphrase", b"token", b"credential", b"authorization")
"""What a line has that anything is masked in; most lines have none, and are done at once."""


def mask_log(path: Path) -> int:
    """Mask the secrets of a log in place; return the number of changed lines."""
    if not path.is_file():
        return 0
    known = secrets_of_environment()
    changed = place = key_lines = 0
    with path.open("rb") as lines, path.open("r+b", buffering=0) as log:
        while line := lines.readline(_LONGEST):
            key_lines = 0 if _KEY_ENDS in line else key_lines - 1
            masked = line
            if key_lines > 0:
                masked = _fitted(MASK.encode(), line)
            elif may_hold_secret(line, known):
                masked = searched(line)
                if _KEY_BEGINS.search(line):
                    key_lines = _KEY_LINES
            if masked != line:
                os.pwrite(log.fileno(), masked, place)
                changed += 1
            place += len(line)
    return changed


def mask_former_logs(attempt_dir: Path) -> None:
    """Mask the logs of earlier attempts of a launch whose warden was gone before it could."""
    for former in attempt_dir.parent.iterdir():
        if former != attempt_dir and not (former / "teardown.json").exists():
            mask_log(former / "server.log")


def may_hold_secret(line: bytes, known: tuple[bytes, ...] = ()) -> bool:
    """Tell whether a line has to be searched; True also for many that hold none.

    Args:
        line: of a log.
        known: secrets without a name.
    """
    if not line.isascii() or any(one in line for one in known):
        return True
    lower = line.lower()
    if any(one in lower for one in _VALUES):
        return True
    return any(one in lower for one in _NAMES) and not _BATCH.search(line)


def searched(line: bytes) -> bytes:
    """Return a line of the same length with its secrets masked."""
    content = line.rstrip(b"\r\n")
    mask = redact_text if _BATCH.search(content) else redact_prose
    text = content.decode(errors="surrogateescape")
    masked = mask(text)
    if b"\x1b" in content:  # a code amid a secret hides it
        bare = mask(ESCAPES.sub("", text))
        masked = masked if bare == ESCAPES.sub("", masked) else bare
    return line if masked == text else _fitted(masked.encode(errors="surrogateescape"), line)


def _fitted(new: bytes, line: bytes) -> bytes:
    """Return a line of the same length with another content."""
    size = len(line.rstrip(b"\r\n"))
    return new[:size].ljust(size) + line[size:]
