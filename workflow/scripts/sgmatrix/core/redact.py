"""Secrets never reach a record: masked by the name that they carry, or as what this shell holds."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

MASK = "***"

# `tokenizer_path`, `max_total_tokens`, `experts_per_token` are no secrets: the word must stand at
# an end, and not be what something is counted by.
_SECRET_NAME = re.compile(
    r"(^|(?<!per)_)(api_?keys?|secrets?|password|passwd|passphrase|token|credentials?)$|"
    r"(^|_)(access|secret|private|admin|ssl)_(key|keyfile|api_key|keyfile_password)$|authorization",
    re.IGNORECASE,
)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Tokens that tell what they are: Hugging Face, OpenAI, GitHub, GitLab, AWS, NVIDIA, Slack, JWT.
_SECRET_VALUE = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{10,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|"
    r"github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|A[KS]IA[A-Z0-9]{12,}|"
    r"nvapi-[A-Za-z0-9_-]{16,}|xox[abeprs]-[A-Za-z0-9-]{10,}|"
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+)"
)
# `Bearer` is a word, too: what follows it has a digit
_BEARER = re.compile(r"\b(bearer\s+)(?=[^\s\"']*\d)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_PRIVATE_KEY = re.compile(
    r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
"""Codes that colour a text, and may stand amid a secret."""
_SHORTEST = 8
"""Characters: a shorter value would be found in words that are no secret."""
_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")
# `api_key=`, `"api_key": `, `--api-key `, `Authorization: `, `\"api_key\": `, `'--api-key', '`
_NAME = re.compile(
    r"(?<![\w-])(?:(?P<flag>--)|-+)?(?P<name>[A-Za-z_][\w-]*)"  # from a word's begin: linear
    r"(?:\\*[\"']?\s*[=:]\s*|\\*[\"']\s*,\s*(?=b?\\*[\"'])|(?(flag)\s+|(?!)))"
)
_VALUE = re.compile(
    r"(?:bearer|basic|token|digest|apikey|negotiate)\s+\S+|\\+[\"'].*?\\+[\"']|"
    r"b?\"(?:\\.|[^\"\\])*\"|b?'(?:\\.|[^'\\])*'|[^\s,;)}\]]+",
    re.IGNORECASE,
)
# `None` says that there is no secret; a number after `token` is a count, not so a PIN
_NO_SECRET = re.compile(r"(?:None|null|true|false|\d{1,4})[.%]?|\"\"|''|\*+", re.IGNORECASE)
_COUNT = re.compile(r"\d{1,9}(?:\.\d*)?[.%]?")


def is_secret_name(name: str) -> bool:
    """Tell whether a value under that name is to be masked."""
    return bool(_SECRET_NAME.search(_HUMP.sub("_", name).replace("-", "_")))


def has_secret(text: str) -> bool:
    """Tell whether a text holds a token of a known form."""
    return bool(_SECRET_VALUE.search(text))


@lru_cache(maxsize=8)
def _secrets(environment: tuple[tuple[bytes, bytes], ...]) -> tuple[str, ...]:
    """Return the secrets that variables hold: by their names, and as passwords of URLs."""
    found: set[str] = set()
    for name, text in ((os.fsdecode(key), os.fsdecode(value)) for key, value in environment):
        if "://" in text and "@" in text:
            login = text.partition("://")[2].partition("/")[0].rpartition("@")[0]
            words = login.partition(":")[2]
            found |= {words, unquote(words)}
        elif is_secret_name(name) and not name.startswith("SGMATRIX_"):
            found.add(text)
    return tuple(sorted((one for one in found if len(one) >= _SHORTEST), key=len, reverse=True))


def secrets_of_environment() -> tuple[bytes, ...]:
    """Return the secrets that variables of this process's environment hold."""
    return tuple(map(os.fsencode, _secrets(tuple(os.environb.items()))))


def redact_text(text: str) -> str:
    """Take secrets out of a text that has no names.

    They are tokens of known forms, private keys, user names and passwords of URLs, and what
    stands in this process's environment under the name of a secret: a server may print it
    without its name.
    """
    masked = _SECRET_VALUE.sub(MASK, _USERINFO.sub(f"{MASK}@", text))
    masked = _PRIVATE_KEY.sub(rf"\1{MASK}", _BEARER.sub(rf"\1{MASK}", masked))
    for secret in _secrets(tuple(os.environb.items())):
        masked = masked.replace(secret, MASK)
    return masked


def redact_prose(text: str) -> str:
    """Take what follows the name of a secret out of a text, too: a log line, a command line.

    Such a text has no keys, so names are looked for in it. What cannot be known, it cannot
    mask: a secret that stands in a sentence without its name.
    """
    parts: list[str] = []
    at = 0
    for found in _NAME.finditer(text):
        value = _VALUE.match(text, found.end())
        if found.start() < at or value is None or not is_secret_name(found["name"]):
            continue
        counts = "token" in found["name"].lower() and _COUNT.fullmatch(value[0])
        if not counts and not _NO_SECRET.fullmatch(value[0]):
            parts += [text[at : found.end()], MASK]
            at = value.end()
    return redact_text("".join(parts) + text[at:])


def redact(value: Any, name: str = "") -> Any:
    """Return the value with every secret in it masked, at any depth, in command lines too."""
    if is_secret_name(name) and not (value is None or value is False or value == ""):
        return MASK
    if isinstance(value, Mapping):
        return {key: redact(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return _mask_flags([redact(inner, name) for inner in value])
    return redact_text(value) if isinstance(value, str) else value


def _mask_flags(words: list[Any]) -> list[Any]:
    """Mask what stands behind a secret flag: `--api-key x` and `--api-key=x`."""
    for i, word in enumerate(words):
        if not (isinstance(word, str) and word.startswith("--")):
            continue
        flag, sign, _ = word[2:].partition("=")
        if is_secret_name(flag):
            if sign:
                words[i] = f"--{flag}={MASK}"
            elif i + 1 < len(words) and not str(words[i + 1]).startswith("--"):
                words[i + 1] = MASK
    return words
