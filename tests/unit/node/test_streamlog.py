"""Errors within answers that had begun with HTTP 200."""

from sgmatrix.node.streamlog import stream_errors

LOG = b"""[2026-11-30 10:00:00] INFO: ready
[2026-11-30 10:00:01] [http_server] Error: too early
[2026-11-30 10:00:02 TP0] Decode batch, #running-req: 2
[2026-11-30 10:00:03] [http_server] Error: boom
[2026-11-30 10:00:04] [http_server] Error: \xff
"""


def test_only_those_of_the_part_are_told_in_order(tmp_path):
    log = tmp_path / "server.log"
    log.write_bytes(LOG)
    start = LOG.index(b"[2026-11-30 10:00:02")

    assert stream_errors(log, start, len(LOG)) == ("boom", "\ufffd")
    assert stream_errors(log, 0, start) == ("too early",)


def test_a_log_that_is_not_there_tells_none(tmp_path):
    assert stream_errors(tmp_path / "none.log", 0, 10) == ()
