"""Requests that come as one call of `/generate` and are answered together; forced tokens.

How likely the stand-in finds a token is known by construction (`true_logprob`). A forced token
carries it as `sglang_oea.forced` does: by the log-probability of another token.

Source    sglang 0.5.23, srt/managers/io_struct.py: lists of prompts, parameters and processors.
Differs   faults do not act on these requests.
"""

import json
import math
from typing import TYPE_CHECKING, Any

from sglang.standin_api import Native, dumps
from sglang.standin_engine import Request
from sglang.standin_experts import TOP_K, own_experts

if TYPE_CHECKING:
    from sglang.standin_api import Api
    from sglang.standin_http import Connection

PROCESSOR = b"csglang_oea.forced\nForcedTokens\n."
"""The only logit processor that it knows, as a request names it."""


def true_logprob(token: int, own: int) -> float:
    """Return how likely a token is: a little less for each expert that a token does not choose."""
    return -1.5 - 0.1 * (token % 3) - 0.05 * (TOP_K - own)


def carried(logprob: float) -> float:
    return logprob - math.log1p(math.exp(logprob))


class Member(Native):
    """One request of a batch."""

    def __init__(self, batch: "Batch", body: dict[str, Any]) -> None:
        super().__init__(batch.api.server, body)
        self.batch = batch
        self.forced: dict[str, Any] | None = None
        if processor := body.get("custom_logit_processor"):
            if not self.server.args["enable_custom_logit_processor"]:
                raise ValueError("The server is not configured to enable custom logit processor.")
            if bytes.fromhex(json.loads(processor)["callable"]) != PROCESSOR:
                raise ValueError("The stand-in knows no such logit processor.")
            self.forced = body["sampling_params"]["custom_params"]

    def end(self, request: Request) -> None:
        self.batch.ended(request, self.whole(request, "length"))

    def whole(self, request: Request, reason: str) -> dict[str, Any]:
        answer = super().whole(request, reason)
        if self.forced is not None:
            first, second = self.forced["carriers"]
            tokens = self.forced["tokens"][: request.produced]
            answer["output_ids"] = tokens
            told = []
            for token in tokens:
                value = carried(true_logprob(token, own_experts()))
                pairs = {first: -99.0, second: -99.0, (second if token == first else first): value}
                told.append([[pairs[name], name, None] for name in (first, second)])
            answer["meta_info"]["output_token_ids_logprobs"] = told
        return answer


class Batch:
    """Requests that are answered as one list, in their order, when the last one has ended."""

    def __init__(self, api: "Api", connection: "Connection", body: dict[str, Any]) -> None:
        self.api, self.connection = api, connection
        self.answers: dict[int, dict[str, Any]] = {}
        several = body["input_ids"]

        def each(name: str, i: int) -> Any:
            value = body.get(name)
            return value[i] if isinstance(value, list) else value

        names = ("sampling_params", "custom_logit_processor", "token_ids_logprob")
        self.requests = [
            self._request({"input_ids": ids} | {name: each(name, i) for name in names})
            for i, ids in enumerate(several)
        ]

    def _request(self, body: dict[str, Any]) -> Request:
        form = Member(self, body)
        self.api.requests += 1
        request = Request(self.api.requests, self.connection, form, stream=False)
        request.key, request.prompt_tokens = form.prompt()
        request.max_new_tokens = request.length = form.max_new_tokens()
        return request

    def submit(self) -> None:
        engine = self.api.server.engine
        engine.waiting.extend(self.requests)
        engine.admit()  # together, so that they decode in step
        self.connection.on_lost = lambda: [
            engine.remove(request, "client_gone") for request in self.requests
        ]

    def ended(self, request: Request, answer: dict[str, Any]) -> None:
        self.answers[request.number] = answer
        if len(self.answers) == len(self.requests):
            whole = [self.answers[one.number] for one in self.requests]
            self.connection.respond(200, dumps(whole))
