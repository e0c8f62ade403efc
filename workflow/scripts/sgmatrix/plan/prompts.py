"""The prompts of a load point as far as a plan knows them: what they are made of, and the hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sgmatrix.core.errors import SgmatrixError

if TYPE_CHECKING:  # a load job reads prompts without the models of the campaign file
    from sgmatrix.plan.load_parts import Load
    from sgmatrix.plan.loads import LoadPoint

_KEYS = ("prompt", "text")


def prompt_facts(load: Load, project: Path) -> dict[str, Any]:
    """Return what makes the prompts of a load, beside lengths and seed; it enters point keys.

    Raises:
        SgmatrixError: `config_rejected` when the file of a custom load cannot be used.
    """
    if load.shared_prefix is not None:
        return load.shared_prefix.model_dump()
    if load.path is None:
        return {}
    path = project / Path(load.path).expanduser()
    prompts = read_prompts(path)
    return {"path": str(path), "sha256": prompts_hash(prompts), "count": len(prompts)}


def prompts_hash(prompts: Sequence[str]) -> str:
    """Return a hash over prompts, wherever their file lies."""
    return hashlib.sha256("\0".join(prompts).encode()).hexdigest()


def read_prompts(path: Path) -> list[str]:
    """Return the different prompts of a JSONL file, in its order.

    A line holds `prompt` or `text`, or `conversations` whose first turn is the prompt (`value`
    or `content`), as ShareGPT has it.

    Raises:
        SgmatrixError: `config_rejected`, naming the file and the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise _refusal(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _refusal(f"{path} is not UTF-8") from None
    prompts = list(dict.fromkeys(_prompts(path, text)))  # one twice is answered from the cache
    if not prompts:
        raise _refusal(f"{path} holds no prompt")
    return prompts


def _prompts(path: Path, text: str) -> Iterator[str]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            prompt = _prompt(json.loads(line))
        except (ValueError, RecursionError):
            raise _refusal(f"{path}, line {number}: is no JSON") from None
        if isinstance(prompt, str) and any("\ud800" <= sign <= "\udfff" for sign in prompt):
            raise _refusal(f"{path}, line {number}: half a character (a lone surrogate)")
        if not isinstance(prompt, str) or not prompt.strip():
            raise _refusal(f"{path}, line {number}: has no prompt, text or conversations")
        yield prompt


def _prompt(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return None
    if found := [entry[key] for key in _KEYS if key in entry]:
        return found[0]
    turns = entry.get("conversations", entry.get("conversation"))
    if isinstance(turns, list) and turns and isinstance(turns[0], dict):
        return turns[0].get("value", turns[0].get("content"))
    return None


def refuse_too_few(prompts: Mapping[str, Any], points: Iterable[LoadPoint]) -> None:
    """Refuse points that have too few prompts, or too few requests for their groups.

    A prompt that came twice would be answered from the cache.

    Raises:
        SgmatrixError: `config_rejected`, naming the largest point.
    """
    groups = prompts.get("groups") or 0
    points = list(points)
    for point in points:
        if groups and point.requests is not None and point.requests < 2 * groups:
            raise SgmatrixError(
                "config_rejected",
                f"load.shared_prefix.groups = {groups}: {point.load_id} has {point.requests} "
                "requests, so that some would share their beginning with none",
                fix=f"at least {2 * groups} requests (load.requests.min), or fewer groups",
            )
    known = [point for point in points if point.requests is not None]
    largest = max(known, key=lambda point: point.requests or 0, default=None)
    count = prompts.get("count")
    if count is not None and largest is not None and (largest.requests or 0) > count:
        raise SgmatrixError(
            "config_rejected",
            f"load.path: {prompts['path']} holds {count} prompts, {largest.load_id} needs "
            f"{largest.requests}",
            fix="more prompts, or fewer load.requests",
        )


def _refusal(facts: str) -> SgmatrixError:
    return SgmatrixError(
        "config_rejected",
        f"load.path: {facts}",
        fix='one JSON object per line, such as {"prompt": "..."}',
    )
