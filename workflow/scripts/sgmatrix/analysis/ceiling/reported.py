"""What a server said of its own memory, from its records and its log.

Source  SGLang: `/server_info` (max_total_num_tokens, effective_max_running_requests_per_dp), and
        the log line `Load weight end. … mem usage=57.06 GB.`, whose GB are GiB.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sgmatrix.analysis.ceiling.inputs import Reported
from sgmatrix.analysis.ceiling.parallel import parallel_of

_WEIGHTS = re.compile(rb"Load weight end\..*?mem usage=([0-9.]+) GB")
_LEAST_GIB = 1.0
"""Two digits of less say too little."""
_HEAD_BYTES = 8 << 20
"""A server loads its weights at the start of its log."""


def reported_by(
    attempt: Path, server: Mapping[str, Any] | None, flags: Mapping[str, Any]
) -> Reported:
    """Return what one attempt reported; nothing of what it did not.

    Args:
        attempt: its folder in the history, with server.log.
        server: its server.json; None: it never was ready.
        flags: of the server.
    """
    info = (server or {}).get("info") or {}
    each = info.get("effective_max_running_requests_per_dp")
    groups = parallel_of(flags).attention_groups
    tokens = info.get("max_total_num_tokens")
    return Reported(
        pool_tokens=tokens if isinstance(tokens, int) and tokens > 0 else None,
        max_running=each * groups if isinstance(each, int) and each > 0 else None,
        weight_bytes=_weight_bytes(attempt / "server.log"),
    )


def _weight_bytes(log: Path) -> float | None:
    """Return the largest of what the ranks said; a rank says 0 where nothing was counted."""
    try:
        with log.open("rb") as file:
            found = _WEIGHTS.findall(file.read(_HEAD_BYTES))
    except OSError:
        return None
    most = max((float(one) for one in found), default=0.0)
    return most * 2**30 if most >= _LEAST_GIB else None
