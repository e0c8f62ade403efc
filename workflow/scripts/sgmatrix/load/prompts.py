"""Prompt files for SGLang's Python client: prompts about topics, and prompts of the user's file."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import write_text
from sgmatrix.load.offer import Offer
from sgmatrix.plan.prompts import prompts_hash, read_prompts
from sgmatrix.plan.topics import COMMON, TOPICS

_OF_THE_TOPIC = 0.7
"""Share of the words of a topical prompt that are of its topic."""


def write_prompts(offer: Offer, path: Path) -> Path | None:
    """Write the prompts that an offer needs as a file; None where the client makes them itself.

    Raises:
        SgmatrixError: `client_setup` when the user's file holds too few prompts, or other ones
            than it held when the campaign was planned.
    """
    if offer.dataset == "topical":
        prompts = list(topical_prompts(offer.requests, offer.input_len, offer.seed))
    elif offer.dataset == "custom":
        prompts = custom_prompts(offer)
    else:
        return None
    # the client wants a second turn, whose length it ignores where an output length is given
    lines = [
        json.dumps({"conversations": [{"value": prompt}, {"value": prompt}]}) for prompt in prompts
    ]
    write_text(path, "\n".join(lines) + "\n")
    return path.resolve()


def custom_prompts(offer: Offer) -> list[str]:
    """Return as many different prompts of the user's file as the offer has requests."""
    path = Path(offer.prompts["path"])
    try:
        found = read_prompts(path)
    except SgmatrixError as refusal:  # it was there when the campaign was planned
        raise SgmatrixError("client_setup", refusal.facts, fix=refusal.fix) from None
    if prompts_hash(found) != offer.prompts.get("sha256"):
        raise SgmatrixError(
            "client_setup",
            f"{path} holds other prompts than when the campaign was planned",
            fix="run snakemake again: the plan is made anew",
        )
    if len(found) < offer.requests:
        raise SgmatrixError(
            "client_setup",
            f"{path} holds {len(found)} prompts, a load point needs {offer.requests}: one that "
            "comes twice would be answered from the cache",
            fix="more prompts, or fewer load.requests",
        )
    return random.Random(offer.seed).sample(found, offer.requests)  # noqa: S311 - no secret


def topical_prompts(count: int, words: int, seed: int) -> Iterator[str]:
    """Yield prompts of that many words, each about one topic; few topics have most prompts.

    The topics' shares fall as 1/rank, and so do the words' within a topic.
    """
    rng = random.Random(seed)  # noqa: S311 - no secret
    names = list(TOPICS)
    rng.shuffle(names)
    common = COMMON.split()
    for topic in rng.choices(names, weights=_falling(len(names)), k=count):
        own = TOPICS[topic].split()
        rng.shuffle(own)
        mine = iter(rng.choices(own, weights=_falling(len(own)), k=words))
        yield " ".join(
            next(mine) if rng.random() < _OF_THE_TOPIC else rng.choice(common) for _ in range(words)
        )


def _falling(count: int) -> list[float]:
    return [1 / rank for rank in range(1, count + 1)]
