"""What happens while a campaign runs, as JSON lines for the progress display.

Events are for the eye: no result is read from them.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from sgmatrix.core.files import append_line


def emit(path: Path, event: str, **facts: object) -> None:
    """Append one event; a full or read-only disk never fails the step that reports."""
    line = json.dumps({"time_s": round(time.time(), 3), "event": event, **facts})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        append_line(path, line)
    except OSError:
        return
