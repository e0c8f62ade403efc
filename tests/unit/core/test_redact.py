"""Secrets are masked by the name that they carry, and look-alikes are left alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgmatrix.core.redact import MASK, is_secret_name, redact, redact_prose, redact_text

SECRET_NAMES = """api_key api-key apikey API_KEY admin_api_key OPENAI_API_KEY HF_TOKEN hf-token
token secret client_secret password MLFLOW_TRACKING_PASSWORD passwd credential
AWS_SECRET_ACCESS_KEY
private_key ssl_keyfile ssl_keyfile_password Authorization x-authorization"""
SECRETS = SECRET_NAMES.split()

OTHER_NAMES = """tokenizer_path tokenizer max_total_tokens max-prefill-tokens tokens input_tokens
skip_tokenizer_init first_token_s key cell_key keyboard secretary passwords_file port
ssl_certfile token_usage num_continuous_decode_steps experts_per_token"""
LOOK_ALIKES = OTHER_NAMES.split()


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_known_by_its_name(name):
    assert is_secret_name(name)
    assert redact({name: "SENTINEL"}) == {name: MASK}


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_look_alike_keeps_its_value(name):
    assert not is_secret_name(name)
    assert redact({name: "plain"}) == {name: "plain"}


@pytest.mark.parametrize("empty", [None, "", False])
def test_that_no_secret_is_set_stays_visible(empty):
    assert redact({"api_key": empty}) == {"api_key": empty}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("http://user:SENTINEL@127.0.0.1:5000/x", "http://***@127.0.0.1:5000/x"),
        ("postgresql://SENTINEL@db and s3://a:SENTINEL@b", "postgresql://***@db and s3://***@b"),
        ("http://127.0.0.1:5000/a@b", "http://127.0.0.1:5000/a@b"),
        ("someone@example.org", "someone@example.org"),
    ],
)
def test_a_url_loses_its_user_and_password_and_nothing_else(text, want):
    assert redact_text(text) == want
    assert redact({"uri": [text]}) == {"uri": [want]}


def test_secrets_are_found_at_any_depth():
    data = {
        "cell": {"env": {"HF_TOKEN": "SENTINEL", "OMP_NUM_THREADS": "1"}},
        "list": [{"flags": ({"api_key": "SENTINEL"}, 8)}],
        "token": {"inner": "SENTINEL"},
        "password": ["SENTINEL", "SENTINEL"],
        "n": 3,
    }

    assert redact(data) == {
        "cell": {"env": {"HF_TOKEN": MASK, "OMP_NUM_THREADS": "1"}},
        "list": [{"flags": [{"api_key": MASK}, 8]}],
        "token": MASK,
        "password": MASK,
        "n": 3,
    }
    assert data["cell"]["env"]["HF_TOKEN"] == "SENTINEL"  # the original is not changed


@pytest.mark.parametrize(
    ("words", "want"),
    [
        (["--api-key", "SENTINEL", "--tp-size", "8"], ["--api-key", MASK, "--tp-size", "8"]),
        (["--api-key=SENTINEL", "--tp-size=8"], [f"--api-key={MASK}", "--tp-size=8"]),
        (["--tokenizer-path", "/models/x"], ["--tokenizer-path", "/models/x"]),
        (["--log-requests", "--host", "127.0.0.1"], ["--log-requests", "--host", "127.0.0.1"]),
        (["x", "--api-key", "SENTINEL"], ["x", "--api-key", MASK]),
        (["x", "--api-key"], ["x", "--api-key"]),
        (["--api-key", "--host", "127.0.0.1"], ["--api-key", "--host", "127.0.0.1"]),
        (["api-key", "plain"], ["api-key", "plain"]),
    ],
)
def test_the_value_of_a_secret_flag_in_an_argument_list_is_masked(words, want):
    assert redact({"arguments": words}) == {"arguments": want}


NAMES = st.sampled_from(SECRETS + LOOK_ALIKES)
DATA = st.recursive(
    st.integers() | st.text(max_size=5) | st.just("SENTINEL"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=10,
)


def under_secret_names(data, name=""):
    """Every value that lies under a secret name, however deep; an independent walk."""
    if name in SECRETS:
        yield data
    elif isinstance(data, dict):
        for key, inner in data.items():
            yield from under_secret_names(inner, key)
    elif isinstance(data, list):
        for inner in data:
            yield from under_secret_names(inner)


@settings(max_examples=300)
@given(data=DATA)
def test_nothing_but_the_mask_stays_under_a_secret_name(data):
    masked = redact(data)

    assert all(value in (MASK, "") for value in under_secret_names(masked))
    assert redact(masked) == masked


@pytest.mark.parametrize(
    "token",
    [
        "hf_AbCdEf123456",
        "sk-proj-0123456789abcdef",
        "ghp_0123456789abcdefABCD",
        "github_pat_11ABCDEFG0_0123456789abcdef",
        "AKIA" + "ABCDEFGHIJKLMNOP",
        "ASIA" + "ABCDEFGHIJKLMNOP",
        "nvapi-0123456789abcdefABCD",
        "xoxb-123456789012-abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.AbCdEf",
    ],
)
def test_a_token_of_a_known_form_is_masked_wherever_it_stands(token):
    assert redact({"note": f"use {token}, please"}) == {"note": "use ***, please"}


def test_words_that_only_begin_like_a_token_stay():
    for word in ("hf_hub", "sk-short", "task-0123456789abcdefgh", "ghp_1"):
        assert redact(word) == word


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("--tp-size 8 --api-key SENTINEL --port 1", "--tp-size 8 --api-key *** --port 1"),
        ("--api-key=SENTINEL", "--api-key=***"),
        ("HF_TOKEN=SENTINEL python -m x", "HF_TOKEN=*** python -m x"),
        ('{"api_key": "SENTINEL", "port": 1}', '{"api_key": ***, "port": 1}'),
        ("Authorization: Bearer SENTINEL", "Authorization: ***"),
        ("authorization: bearer SENTINEL", "authorization: ***"),
        ("Authorization: Token SENTINEL", "Authorization: ***"),
        ("(b'authorization', b'Bearer SENTINEL')", "(b'authorization', ***)"),
        ("('api_key', 'SENTINEL'), 1", "('api_key', ***), 1"),
        ("['--api-key', 'SENTINEL', '--port']", "['--api-key', ***, '--port']"),
        (r"{\"api_key\": \"SENTINEL\", \"port\": 1}", r"{\"api_key\": ***, \"port\": 1}"),
        (r"password='it\'s SENTINEL', 1", "password=***, 1"),
        ("accessToken=SENTINEL clientSecret: SENTINEL", "accessToken=*** clientSecret: ***"),
        ("password=12345678, secrets: 12", "password=***, secrets: 12"),
        ("got Bearer abc-SENTINEL-1 here", "got Bearer *** here"),
        ("the bearer certificates are", "the bearer certificates are"),
        ("api_key=None, token: 17", "api_key=None, token: 17"),
        ("--tokenizer-path /models/x", "--tokenizer-path /models/x"),
    ],
)
def test_a_secret_in_a_command_line_of_one_text_is_known_by_the_name_before_it(text, want):
    assert redact_prose(text) == want


@pytest.mark.parametrize("end", ["\n-----END RSA PRIVATE KEY-----\nrest", ""])
def test_a_private_key_is_masked_over_its_lines(end):
    text = f"see\n-----BEGIN RSA PRIVATE KEY-----\nSENTINEL\nSENTINEL{end}"

    masked = redact_text(text)
    assert "SENTINEL" not in masked
    assert masked.startswith("see\n-----BEGIN RSA PRIVATE KEY-----***")
    assert masked.endswith(end.strip("\n") or MASK)


def test_what_the_environment_holds_as_a_secret_is_masked_without_its_name(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "SENTINEL-held-word")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:SENTINEL%2Duri@host:5000/x")
    monkeypatch.setenv("SHORT_TOKEN", "short")
    text = "ValueError: SENTINEL-held-word, SENTINEL-uri, SENTINEL%2Duri; a short one"

    assert redact_text(text) == "ValueError: ***, ***, ***; a short one"


def test_one_long_word_is_looked_through_once():
    word = "a" * (1 << 20)  # each place of it as a begin would take days

    assert redact_prose(f"{word} -api_key=SENTINEL") == f"{word} -api_key=***"
