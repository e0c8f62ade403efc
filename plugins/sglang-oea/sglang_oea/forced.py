"""A logit processor that makes a server write a given text, and tell how likely it found it.

SGLang computes returned log-probabilities after the processors of a request, so that a forced
token would always be certain. The probability that it had before is therefore carried by the
logit of another token, the carrier, whose log-probability the request asks for.

Needs `--enable-custom-logit-processor`. Works with OEA on and off; nothing else imports it.
"""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.sampling.custom_logit_processor import CustomLogitProcessor

_NEVER = -1e4  # a probability of 0 that no sanitizer takes for a fault
_RANGE = (-80.0, -1e-6)  # of what is carried: below, exp() is 0; at 0 the carrier would be chosen


class ForcedTokens(CustomLogitProcessor):
    """Force `custom_params["tokens"]`, one per step, and carry what each had.

    `custom_params["carriers"]` are two token ids: the first one carries, the second one where
    the first is the forced token itself. With q the log-probability that the token had, the
    forced token gets the logit 0 and the carrier q, so that the carrier's log-probability is
    q - log(1 + exp(q)).
    """

    def __call__(
        self, logits: torch.Tensor, custom_param_list: list[dict[str, Any]] | None = None
    ) -> torch.Tensor:
        """Return the logits of the next token, one row per request, [rows, vocabulary]."""
        forced = torch.full_like(logits, _NEVER)
        for row, asked in enumerate(custom_param_list or []):
            step = asked.get("step", 0)
            asked["step"] = step + 1
            token = asked["tokens"][min(step, len(asked["tokens"]) - 1)]
            first, second = asked["carriers"]
            before = torch.log_softmax(logits[row].float(), dim=-1)[token]
            forced[row, first if token != first else second] = before.clamp(*_RANGE)
            forced[row, token] = 0.0
        return forced
