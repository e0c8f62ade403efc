"""Secrets in a server's log."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgmatrix.core.redact import secrets_of_environment
from sgmatrix.node.logmask import mask_former_logs, mask_log, may_hold_secret, searched

LINES = (
    b"[2026-12-01 10:00:00] server_args=ServerArgs(api_key='planted-key-1', tp_size=1)\n",
    b"\x1b[32mINFO\x1b[0m \xff\xfe loading from https://me:planted-2@models.example/x\r\n",
    b"headers: Authorization: Bearer planted-key-3\n",
    b"[2026-12-01 10:00:01] Decode batch, #running-req: 2, #token: 64, token usage: 0.01\n",
    b"planted-of-the-environment\n",
    b"no newline at the end, password=planted-4",
)


def test_they_are_masked_and_every_line_stays_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "planted-of-the-environment")
    log = tmp_path / "server.log"
    log.write_bytes(b"".join(LINES))

    assert mask_log(log) == 5
    found = log.read_bytes().splitlines(keepends=True)
    assert b"planted" not in log.read_bytes()
    assert [len(line) for line in found] == [len(line) for line in LINES]
    assert found[0].startswith(b"[2026-12-01 10:00:00] server_args=ServerArgs(api_key=***, tp_s")
    assert found[1].startswith(b"\x1b[32mINFO\x1b[0m \xff\xfe loading from https://***@models.ex")
    assert found[1].endswith(b" \r\n") and found[3] == LINES[3]


def test_a_second_time_there_is_nothing_to_mask(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"".join(LINES))
    mask_log(log)

    assert mask_log(log) == 0
    assert mask_log(tmp_path / "none.log") == 0


def test_the_log_of_an_attempt_whose_warden_is_gone_is_masked_by_the_next(tmp_path: Path) -> None:
    for number in ("1", "2", "3"):
        (tmp_path / number).mkdir()
        (tmp_path / number / "server.log").write_text("api_key='planted-key-1'\n")
    (tmp_path / "2" / "teardown.json").write_text("{}")

    mask_former_logs(tmp_path / "3")

    read = [(tmp_path / number / "server.log").read_text() for number in ("1", "2", "3")]
    assert ["planted" in text for text in read] == [False, True, True]


def test_a_private_key_and_a_token_with_colours_in_it_are_masked(tmp_path: Path) -> None:
    lines = (
        b"-----BEGIN RSA PRIVATE KEY-----\n",
        b"planted1\r\n",
        b"planted2\n",
        b"-----END RSA PRIVATE KEY-----\n",
        b"after it\n",
        b"\x1b[1mhf_\x1b[32mplanted\x1b[0m1234567890\n",
    )
    log = tmp_path / "server.log"
    log.write_bytes(b"".join(lines))

    assert mask_log(log) == 3
    found = log.read_bytes().splitlines(keepends=True)
    assert b"planted" not in log.read_bytes()
    assert [len(line) for line in found] == [len(line) for line in lines]
    assert [found[i] for i in (0, 3, 4)] == [lines[i] for i in (0, 3, 4)]
    assert found[1] == b"***     \r\n"
    assert mask_log(log) == 0


WORDS = (
    *("apiKey", "API_KEYS", "--admin-api-key", "passwd", "passWord", "Pass-phrase", "hfToken"),
    *("client_secret", "credentials", "ssl_keyfile_password", "Authorization", "x-authorization"),
    *("\u212aey", "api_\u212aey", "\u017fecret", "pas\u017fword", "to\u212aen"),
    *(
        "hf_AAAAAAAAAAAAAA",
        "sk-aaaaaaaaaaaaaaaaaaaa",
        "ghp_aaaaaaaaaaaaaaaaaaaa",
        "AKIAAAAAAAAAAAAAAAAA",
    ),
    *("github_pat_aaaaaaaaaaaaaaaaaaaaaaaa", "glpat-aaaaaaaaaaaaaaaaaaaa", "xoxb-aaaaaaaaaaaa"),
    *("nvapi-aaaaaaaaaaaaaaaaaaaa", "eyJaaaaaaaaaa.eyJaaaaaaaaaa.aaaa", "bearer 1aaaaaaaaaaaa"),
    *("-----BEGIN PRIVATE KEY-----", "http://me:word@host", "planted-of-the-environment"),
    *("Decode batch", "Prefill batch", "token usage", "POST /generate", "\x1b[32m", "=", ": ", "'"),
)


@given(parts=st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=6))
@settings(max_examples=600, deadline=None)
def test_a_line_that_is_not_searched_holds_nothing_that_a_search_would_mask(parts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_TOKEN", "planted-of-the-environment")
        line = "".join(parts).replace("\n", " ").replace("\r", " ").encode(errors="replace")
        known = secrets_of_environment()
        assert may_hold_secret(line, known) or searched(line) == line


def test_what_a_server_writes_all_day_long_is_not_searched():
    for line in (
        b"[2026-12-01 10:00:01] Decode batch, #running-req: 2, #token: 64, token usage: 0.01\n",
        b'[2026-12-01 10:00:01] INFO:     127.0.0.1:40000 - "POST /generate HTTP/1.1" 200 OK\n',
    ):
        assert not may_hold_secret(line)
