"""How likely a server finds given texts while it decodes: the price of fewer experts.

The cell without OEA writes texts of its own. Each cell is then made to write the same texts, token
by token in decode steps, where OEA runs, and tells the probability that it gave to each token
before it was forced. Log-probabilities of prompts would be of no use: they are computed in the
prefill, where OEA never runs.

Source    the forcing processor is `sglang_oea.forced`, installed with the plug-in in both arms.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from sgmatrix.node.server import Server
from sgmatrix.node.wire import request

PROCESSOR = json.dumps({"callable": b"csglang_oea.forced\nForcedTokens\n.".hex()})
"""SGLang's form of a logit processor: a pickle, here of a class by its name."""
CARRIERS = (0, 1)
"""Tokens whose probability carries the answer; the second one where the first is forced."""
_LIMIT_S = 300.0


def own_words(
    server: Server, *, prompts: int, input_len: int, tokens: int, vocab: int, seed: int
) -> list[dict[str, list[int]]]:
    """Return texts that a server writes: random prompts and its most likely answers, as ids.

    All are decoded together, in one batch.
    """
    rng = random.Random(seed)  # noqa: S311 - no secret
    asked = [[rng.randrange(2, vocab) for _ in range(input_len)] for _ in range(prompts)]
    sampling = {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True}
    answers = _generate(server, {"input_ids": asked, "sampling_params": sampling})
    return [
        {"prompt": prompt, "answer": answer["output_ids"]}
        for prompt, answer in zip(asked, answers, strict=True)
    ]


def forced_logprobs(server: Server, texts: Sequence[Mapping[str, list[int]]]) -> list[list[float]]:
    """Return the log-probability that a server gives to each token of each text but its first.

    The first one comes from the prefill. All texts are decoded together, in one batch.

    Raises:
        OSError: when the server does not answer, or not about every token.
    """
    body = {
        "input_ids": [text["prompt"] for text in texts],
        "sampling_params": [
            {
                "temperature": 0,
                "max_new_tokens": len(text["answer"]),
                "ignore_eos": True,
                "custom_params": {"tokens": text["answer"], "carriers": list(CARRIERS)},
            }
            for text in texts
        ],
        "custom_logit_processor": [PROCESSOR] * len(texts),
        "return_logprob": True,
        "token_ids_logprob": [list(CARRIERS)] * len(texts),
    }
    found = []
    for text, answer in zip(texts, _generate(server, body), strict=True):
        if answer["output_ids"] != text["answer"]:
            raise OSError("the server did not write the text that was forced upon it")
        told = answer["meta_info"]["output_token_ids_logprobs"]
        if len(told) != len(text["answer"]):
            raise OSError(f"{len(told)} of {len(text['answer'])} tokens have a probability")
        found.append(
            [
                true_logprob(_carried(token, about))
                for token, about in zip(text["answer"], told, strict=True)
            ][1:]
        )
    return found


def _carried(token: int, about: Sequence[Sequence[Any]]) -> float:
    carrier = CARRIERS[1] if token == CARRIERS[0] else CARRIERS[0]
    return next(float(logprob) for logprob, name, *_ in about if name == carrier)


def true_logprob(carried: float) -> float:
    """Return the log-probability q that a carrier's log-probability x stands for.

    The forced token has the logit 0 and the carrier the logit q, all others next to none:
    x = q - log(1 + exp(q)), hence q = x - log(1 - exp(x)), both below 0.
    """
    return carried - math.log(-math.expm1(carried)) if carried < 0 else 0.0


def summary(logprobs: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return the mean log-probability per token, in all and by text."""
    return {
        "tokens": sum(len(one) for one in logprobs),
        "logprob_mean": statistics.fmean(value for one in logprobs for value in one),
        "logprob_by_text": [statistics.fmean(one) for one in logprobs],
    }


def _generate(server: Server, body: dict[str, Any]) -> list[dict[str, Any]]:
    status, answer = request(server.port, "POST", "/generate", body, timeout_s=_LIMIT_S)
    if status != 200:
        raise OSError(f"/generate answered {status}: {answer[:300].decode(errors='replace')}")
    said: list[dict[str, Any]] = json.loads(answer)
    return said
