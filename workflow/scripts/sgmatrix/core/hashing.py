"""One digest of JSON data, whatever the order of its keys."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest(data: Any) -> str:
    """Return the sha256 of a value's canonical JSON."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
