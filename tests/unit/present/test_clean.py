"""Foreign text made fit to be shown: what is masked, what is not, what a tail is."""

import pytest

from sgmatrix.present.clean import clean, clean_tail


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("ServerArgs(api_key='sk-1', tp_size=2)", "ServerArgs(api_key=***, tp_size=2)"),
        ('{"hf_token": "hf_abc", "port": 1}', '{"hf_token": ***, "port": 1}'),
        ("python -m x --api-key sk-1 --port 3", "python -m x --api-key *** --port 3"),
        ("python -m x --api-key=sk-1 --port 3", "python -m x --api-key=*** --port 3"),
        ("> Authorization: Bearer abc.def", "> Authorization: ***"),
        ("fetch https://me:pw@host/x", "fetch https://***@host/x"),
    ],
)
def test_a_secret_is_masked_by_its_name(line, shown):
    assert clean(line) == shown


@pytest.mark.parametrize(
    "line",
    [
        "Decode batch. #running-req: 8, #token: 512, token usage: 0.01",
        "api_key=None, admin_api_key=None, tokenizer_path='/models/x'",
        "the token that was generated first",
        "max_total_tokens=880000",
    ],
)
def test_what_is_no_secret_stays(line):
    assert clean(line) == line


def test_escape_codes_and_control_characters_go():
    assert clean("\x1b[31mred\x1b[0m \x1b]0;title\x07bell\x08\x00") == "red bell"


def test_a_tail_is_the_last_lines_and_a_progress_bar_its_last_state():
    log = b"first\r\n\x1b[1msecond\x1b[0m\n 10%\r 50%\r100%\n\xff\n\n\n"

    assert clean_tail(log, 3) == "second\n100%\n\N{REPLACEMENT CHARACTER}\n"


def test_the_tail_of_an_empty_log_is_empty():
    assert clean_tail(b"", 3) == ""
