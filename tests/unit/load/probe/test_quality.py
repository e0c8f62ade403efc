"""Texts that a server is made to write, and what it thought of them before."""

import json
import math
import pickle
import sys
from types import ModuleType, SimpleNamespace

import pytest

from sgmatrix.load.probe import quality
from sgmatrix.load.probe.quality import (
    PROCESSOR,
    forced_logprobs,
    own_words,
    summary,
    true_logprob,
)

SERVER = SimpleNamespace(port=31000)


def carried(q):
    """What a carrier with the logit q has beside a forced token with 0, no other counting."""
    return q - math.log(1 + math.exp(q))


@pytest.mark.parametrize(
    "q", [-80.0, -30.0, -12.3, -5.0, -1.0, -math.log(2), -0.1, -1e-2, -1e-4, -1e-6]
)
def test_the_true_log_probability_is_what_the_carrier_stands_for(q):
    assert true_logprob(carried(q)) == pytest.approx(q, rel=1e-9, abs=1e-12)


def test_two_values_by_hand():
    # q = 0: the two logits are equal, each has log(1/2); a half of that odds is q = log(1/2)
    assert true_logprob(math.log(1 / 2)) == pytest.approx(0.0, abs=1e-12)
    assert true_logprob(math.log(1 / 3)) == pytest.approx(math.log(1 / 2))


@pytest.mark.parametrize("carrier", [0.0, 1e-9])
def test_a_carrier_that_is_certain_stands_for_certainty(carrier):
    assert true_logprob(carrier) == 0.0


def test_the_processor_is_the_plug_in_s_class_by_its_name(monkeypatch):
    module = ModuleType("sglang_oea.forced")
    module.ForcedTokens = type("ForcedTokens", (), {})
    monkeypatch.setitem(sys.modules, "sglang_oea", ModuleType("sglang_oea"))
    monkeypatch.setitem(sys.modules, "sglang_oea.forced", module)

    pickled = bytes.fromhex(json.loads(PROCESSOR)["callable"])

    assert pickle.loads(pickled) is module.ForcedTokens


# --- what is asked, and what is made of the answers ----------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """What /generate was asked; `answers` is what it says."""
    asked = SimpleNamespace(bodies=[], answers=[], status=200)

    def request(port, method, path, body, *, timeout_s):
        assert (port, method, path) == (31000, "POST", "/generate")
        asked.bodies.append(body)
        return asked.status, json.dumps(asked.answers).encode()

    monkeypatch.setattr(quality, "request", request)
    return asked


def answer(ids, told):
    return {"output_ids": ids, "meta_info": {"output_token_ids_logprobs": told}}


def entry(first, second):
    """What SGLang tells of the carriers 0 and 1 at one token: log-probability, id, text."""
    return [[first, 0, None], [second, 1, None]]


def test_a_server_s_own_words_are_all_asked_for_at_once(asked):
    asked.answers = [{"output_ids": [5, 6, 7]}, {"output_ids": [8, 9, 9]}]

    texts = own_words(SERVER, prompts=2, input_len=4, tokens=3, vocab=50, seed=7)

    (body,) = asked.bodies
    assert body["sampling_params"] == {"temperature": 0, "max_new_tokens": 3, "ignore_eos": True}
    assert [text["prompt"] for text in texts] == body["input_ids"]
    assert [text["answer"] for text in texts] == [[5, 6, 7], [8, 9, 9]]
    assert [len(prompt) for prompt in body["input_ids"]] == [4, 4]
    # ids 0 and 1 carry
    assert all(2 <= token < 50 for prompt in body["input_ids"] for token in prompt)


def test_the_same_seed_asks_for_the_same_prompts(asked):
    asked.answers = [{"output_ids": [5]}]
    for seed in (7, 7, 8):
        own_words(SERVER, prompts=1, input_len=8, tokens=1, vocab=10_000, seed=seed)

    one, again, other = (body["input_ids"] for body in asked.bodies)
    assert one == again != other


TEXTS = [
    {"prompt": [2, 3], "answer": [9, 0, 7]},  # the middle token is the first carrier itself
    {"prompt": [4, 5], "answer": [6, 8]},
]


def test_each_text_is_forced_and_its_true_probabilities_come_back_without_the_first(asked):
    asked.answers = [
        answer([9, 0, 7], [entry(-9.0, -9.0), entry(0.0, carried(-2.5)), entry(carried(-0.5), -9)]),
        answer([6, 8], [entry(-9.0, -9.0), entry(carried(-4.0), -9.0)]),
    ]

    found = forced_logprobs(SERVER, TEXTS)

    assert found == [[pytest.approx(-2.5), pytest.approx(-0.5)], [pytest.approx(-4.0)]]
    (body,) = asked.bodies
    assert body["input_ids"] == [[2, 3], [4, 5]]
    assert [one["custom_params"]["tokens"] for one in body["sampling_params"]] == [
        [9, 0, 7],
        [6, 8],
    ]
    assert [one["max_new_tokens"] for one in body["sampling_params"]] == [3, 2]
    assert body["sampling_params"][0]["custom_params"]["carriers"] == [0, 1]
    assert body["token_ids_logprob"] == [[0, 1], [0, 1]]
    assert body["custom_logit_processor"] == [PROCESSOR, PROCESSOR]
    assert body["return_logprob"] is True


def test_another_text_than_the_forced_one_is_no_measurement(asked):
    asked.answers = [answer([9, 0, 6], [entry(-1, -1)] * 3), answer([6, 8], [entry(-1, -1)] * 2)]

    with pytest.raises(OSError, match="did not write the text that was forced upon it"):
        forced_logprobs(SERVER, TEXTS)


def test_a_token_without_a_probability_is_no_measurement(asked):
    asked.answers = [answer([9, 0, 7], [entry(-1, -1)] * 2), answer([6, 8], [entry(-1, -1)] * 2)]

    with pytest.raises(OSError, match="2 of 3 tokens have a probability"):
        forced_logprobs(SERVER, TEXTS)


def test_a_server_that_refuses_is_named_with_its_words(asked):
    asked.status, asked.answers = 400, {"error": "no custom processor"}

    with pytest.raises(OSError, match=r"/generate answered 400: .*no custom processor"):
        forced_logprobs(SERVER, TEXTS)


def test_the_summary_weighs_tokens_alike_and_keeps_the_texts_apart():
    # -12 over 4 tokens, although the means of the two texts are -2 and -6
    assert summary([[-1.0, -2.0, -3.0], [-6.0]]) == {
        "tokens": 4,
        "logprob_mean": -3.0,
        "logprob_by_text": [-2.0, -6.0],
    }
