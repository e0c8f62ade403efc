"""Proof that a plug-in runs in every rank of a server, in its ranks' own words.

SGLang logs and swallows the failures of plug-ins and serves without them, so that a healthy
server proves nothing. A nonce is written into the status folder; each rank answers with a file
that repeats it, so that an old answer proves nothing either.

Source    `sglang_oea.proof` of plugins/sglang-oea, which writes the answers.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sgmatrix.core.files import write_text

STATUS_VARIABLE = "OEA_STATUS_DIR"
ANSWER_S = 30.0
"""For all ranks to answer; they look for a question five times a second."""
_POLL_S = 0.05

_KEPT = (
    *("tp_rank", "pp_rank", "dp_rank", "ep_rank", "pid", "calls", "captured_calls", "tokens"),
    *("layers", "k0", "k_max", "p", "max_rank", "fill", "core", "router", "device", "detector"),
    *("plugin_version", "plugin_sha256", "sglang_version", "check"),
)


def status_folder(attempt: Path) -> Path:
    """Return where the ranks of a launch answer."""
    return attempt / "proof"


def ask_ranks(folder: Path, ranks: int, limit_s: float = ANSWER_S) -> list[dict[str, Any]]:
    """Return the answers of the ranks to a new question: fewer than `ranks` after the limit."""
    nonce = secrets.token_hex(8)
    write_text(folder / "ask", nonce + "\n")
    deadline = time.monotonic() + limit_s
    while True:
        found = [answer for answer in _answers(folder) if answer.get("answers") == nonce]
        if len(found) >= ranks or time.monotonic() > deadline:
            return sorted(found, key=_place)
        time.sleep(_POLL_S)


def stray_answers(folder: Path) -> list[str]:
    """Return the files of ranks that answer although the plug-in is off."""
    return sorted(path.name for path in folder.glob("rank-*.json"))


def why_unproven(
    answers: Sequence[Mapping[str, Any]], ranks: int, asked: Mapping[str, Any], *, decoded: bool
) -> str | None:
    """Return why answers are no proof that every rank runs what was asked for; None: they are.

    Args:
        answers: of the ranks.
        ranks: how many there are.
        asked: settings by the names of the answers, such as `k0`.
        decoded: whether the server has decoded by now, so that each must have been called.
    """
    if len(answers) != ranks:
        return f"{len(answers)} of {ranks} ranks answered that the plug-in runs"
    for answer in answers:
        who = f"rank {_name(answer)}"
        for name, value in asked.items():
            if answer.get(name) != value:
                return f"{who} runs with {name} = {answer.get(name)!r}, asked was {value!r}"
        check = answer.get("check") or {}
        if check.get("ok") is False:
            return f"{who}: its core is not the reference: {check.get('problem')}"
        if not decoded:
            continue
        if not check.get("ok"):
            return f"{who} has not compared its core with the reference"
        if not answer.get("calls"):
            return f"{who} was never called in a decode step"
    return None


def proof_record(answers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what a record keeps of the answers, one mapping per rank."""
    return [{name: answer[name] for name in _KEPT if name in answer} for answer in answers]


def _answers(folder: Path) -> list[dict[str, Any]]:
    found = []
    for path in folder.glob("rank-*.json"):
        try:
            answer = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(answer, dict):
            found.append(answer)
    return found


def _place(answer: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(int(answer.get(name) or 0) for name in ("dp_rank", "pp_rank", "tp_rank", "pid"))


def _name(answer: Mapping[str, Any]) -> str:
    ranks = {name: answer.get(f"{name}_rank") for name in ("dp", "pp", "tp")}
    return " ".join(f"{name}{rank}" for name, rank in ranks.items() if rank) or "tp0"
