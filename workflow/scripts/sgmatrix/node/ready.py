"""When a server is ready, and proof that it is ours.

Ready = process alive, our process tree owns the port, /health 200, /server_info equals the
request and carries our name for it, one token generated. An open port or /v1/models prove
nothing: SGLang answers both before it can serve, and a stranger answers them too.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any

from sgmatrix.node import proc
from sgmatrix.node.wire import get_json, request

# Server flag -> key of /server_info where they differ.
_INFO_NAMES = {"model_path": "model_path", "tp": "tp_size"}
_EACH = "effective_max_running_requests_per_dp"


class NotOurs(Exception):
    """What answers is not what was launched; `args` = (reason class, what differs)."""


def port_owner(port: int, root_pid: int) -> bool | None:
    """Tell whether the tree below `root_pid` listens on the port; None when nobody does."""
    inodes = proc.listening_inodes(port)
    if not inodes:
        return None
    return bool(proc.owners(inodes, [root_pid, *proc.tree(root_pid)]))


def compare_info(
    info: Mapping[str, Any], nonce: str, flags: Mapping[str, Any], version: str | None = None
) -> dict[str, list[Any]]:
    """Return {flag: [asked, runs with]} for every flag that the server reports differently.

    The engine's version counts as one where it is given: what runs has to be what was planned.

    Raises:
        NotOurs: `wrong_server` when it does not carry the name that this launch gave it.
    """
    name = info.get("served_model_name")
    if name != nonce:
        raise NotOurs("wrong_server", f"served_model_name is {name!r}, not {nonce!r}")
    differing: dict[str, list[Any]] = {}
    reported = info.get("version")
    if version is not None and reported is not None and _plain(version) != _plain(reported):
        differing["engine version"] = [version, reported]
    for flag, asked in flags.items():
        key = _INFO_NAMES.get(flag, flag)
        if asked is not None and key in info and not _same(asked, info[key]):
            differing[flag] = [asked, info[key]]
    return differing


def _plain(version: Any) -> str:
    """Return a version without the signs that installers change, as in 0.5.9+g1.2, 0.5.9+g1-2."""
    return re.sub(r"[^0-9A-Za-z]+", ".", str(version))


def _same(asked: Any, reported: Any) -> bool:
    if isinstance(asked, bool) or isinstance(reported, bool):
        return asked is reported
    if isinstance(asked, int | float) and isinstance(reported, int | float):
        return abs(asked - reported) <= 1e-9 * max(1.0, abs(asked))
    if isinstance(asked, dict):  # given as JSON
        with contextlib.suppress(ValueError, TypeError):
            reported = json.loads(reported)
        return bool(asked == reported)
    return str(asked) == str(reported)


def is_healthy(port: int, timeout_s: float) -> bool:
    """Tell whether /health answers 200 within the time."""
    try:
        return request(port, "GET", "/health", timeout_s=timeout_s)[0] == 200
    except OSError:
        return False


def server_info(port: int, timeout_s: float) -> dict[str, Any]:
    """Return what the server says of itself."""
    info: dict[str, Any] = get_json(port, "/server_info", timeout_s=timeout_s)
    return info


def kept_info(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of /server_info: no lists, but how many requests a rank runs at once.

    That is said for each data-parallel rank, and is the same for all.
    """
    kept = {key: value for key, value in info.items() if not isinstance(value, list)}
    states = info.get("internal_states")
    state = states[0] if isinstance(states, list) and states else None
    if isinstance(state, dict) and _EACH in state:
        kept[_EACH] = state[_EACH]
    return kept


def generate_one_token(port: int, timeout_s: float) -> None:
    """Generate one real token.

    Raises:
        OSError: when the server does not give one within the time.
        NotOurs: `wrong_server` when its answer does not count its tokens: the load client would
            then take the number that it asked for.
    """
    said = generate(port, tokens=1, timeout_s=timeout_s)
    tokens = said.get("meta_info", {}).get("completion_tokens")
    if tokens is None and said.get("text"):
        raise NotOurs(
            "wrong_server",
            "its answers do not count their tokens (meta_info.completion_tokens is missing), so "
            "that no rate could be told",
        )
    if tokens != 1:
        raise OSError(f"/generate gave {tokens} tokens, 1 was asked for")


def generate(port: int, *, tokens: int, timeout_s: float) -> dict[str, Any]:
    """Return what the server answers to a short prompt.

    Raises:
        OSError: when it does not within the time.
    """
    sampling = {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True}
    body = {"input_ids": [1, 2, 3], "sampling_params": sampling}
    status, answer = request(port, "POST", "/generate", body, timeout_s=timeout_s)
    if status != 200:
        raise OSError(f"/generate answered {status}: {answer[:200].decode(errors='replace')}")
    said: dict[str, Any] = json.loads(answer)
    return said
