"""The page's own script, the only one that its policy lets run: the hash is of these bytes."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path


def read_script(folder: Path) -> str:
    """Return the script as it stands in the page."""
    return (folder / "page.js").read_text(encoding="utf-8")


def policy(script: str) -> str:
    """Return the content security policy of a page with that script and nothing from elsewhere."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )
