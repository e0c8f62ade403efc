"""Secrets that a server wrote to its log, masked where they stand once it has ended.

Each line keeps its length in bytes, so that places in the log that were noted while it grew, as
the begin and the end of a load point, stay what they are.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sgmatrix.core.redact import redact_prose, redact_text

_LONGEST = 1 << 20
"""Bytes of a line that are looked at together."""
_BATCH = re.compile(rb"(?:Prefill|Decode) batch\b")
"""What a server writes all day long: counts, no names of secrets."""


def mask_log(path: Path) -> int:
    """Mask the secrets of a log in place; return the number of changed lines."""
    if not path.is_file():
        return 0
    changed = place = 0
    with path.open("rb") as lines, path.open("r+b", buffering=0) as log:
        while line := lines.readline(_LONGEST):
            masked = _masked(line)
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


def _masked(line: bytes) -> bytes:
    content = line.rstrip(b"\r\n")
    text = content.decode(errors="surrogateescape")
    masked = (redact_text if _BATCH.search(content) else redact_prose)(text)
    if masked == text:
        return line
    new = masked.encode(errors="surrogateescape")[: len(content)].ljust(len(content))
    return new + line[len(content) :]
