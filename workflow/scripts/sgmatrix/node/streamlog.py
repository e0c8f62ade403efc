"""Answers that a server had begun with HTTP 200 when it failed: its own lines about them.

The status cannot be taken back by then. The error is sent within the stream, where SGLang's
load client does not look for it.

Source    http_server.py of SGLang 0.5.23: `stream_results` of /generate.
Not here  deaths of the engine (`node.logwatch`).
"""

from __future__ import annotations

from pathlib import Path

_SIGN = b"[http_server] Error:"
_PIECE_BYTES = 1 << 20
_QUOTED = 200


def stream_errors(log: Path, start: int, end: int) -> tuple[str, ...]:
    """Return what the server said of each, in order; at most so many characters of each.

    Args:
        log: the server's log.
        start: where the part to read begins, in bytes.
        end: where it ends.
    """
    found = []
    try:
        with log.open("rb") as file:
            file.seek(start)
            place = start
            # a piece at a time: a prompt that is logged may be a line of megabytes
            while place < end and (raw := file.readline(min(_PIECE_BYTES, end - place))):
                _, sign, rest = raw.partition(_SIGN)
                if sign:
                    found.append(rest.decode("utf-8", "replace").strip()[:_QUOTED])
                place += len(raw)
    except OSError:
        pass
    return tuple(found)
