"""Prompts that are written for SGLang's Python client."""

import json
from collections import Counter

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.load.offer import Offer
from sgmatrix.load.prompts import topical_prompts, write_prompts
from sgmatrix.plan.prompts import prompts_hash, read_prompts
from sgmatrix.plan.topics import COMMON, TOPICS


def offer(dataset, requests=4, **prompts):
    return Offer(dataset, 2, 12, 8, requests, seed=3, prompts=prompts)


def written(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(len(line["conversations"]) == 2 for line in lines)
    return [line["conversations"][0]["value"] for line in lines]


def test_random_ids_are_made_by_the_client(tmp_path):
    assert write_prompts(offer("random-ids"), tmp_path / "p.jsonl") is None
    assert list(tmp_path.iterdir()) == []


def test_topical_prompts_have_their_length_and_their_seed(tmp_path):
    prompts = list(topical_prompts(5, 12, seed=3))

    assert {len(prompt.split()) for prompt in prompts} == {12}
    assert list(topical_prompts(5, 12, seed=3)) == prompts
    assert list(topical_prompts(5, 12, seed=4)) != prompts
    file = write_prompts(offer("topical", 5), tmp_path / "p.jsonl")
    assert written(file) == prompts


def test_each_prompt_is_about_one_topic_and_few_topics_have_most():
    own = {topic: set(words.split()) for topic, words in TOPICS.items()}
    common = set(COMMON.split())
    topics = Counter()
    for prompt in topical_prompts(600, 60, seed=1):
        words = [word for word in prompt.split() if word not in common]
        of = [topic for topic in own if set(words) <= own[topic]]
        topics[of[0]] += 1
        assert 0.4 <= len(words) / 60 <= 0.95
    # shares fall as 1/rank over six topics: the first has 1 / 2.45 of them
    assert topics.most_common(1)[0][1] / 600 == pytest.approx(1 / 2.45, abs=0.08)
    assert len(topics) == 6


def test_topics_share_no_word_so_that_a_word_tells_its_topic():
    words = [word for text in (*TOPICS.values(), COMMON) for word in text.split()]

    assert [word for word, count in Counter(words).items() if count > 1] == []


def test_custom_prompts_are_drawn_without_one_coming_twice(tmp_path):
    source = tmp_path / "mine.jsonl"
    source.write_text("".join(f'{{"prompt": "p{i} q"}}\n' for i in range(9)))
    known = {"path": str(source), "sha256": prompts_hash(read_prompts(source))}
    file = write_prompts(offer("custom", 9, **known), tmp_path / "p.jsonl")

    assert sorted(written(file)) == sorted(f"p{i} q" for i in range(9))


def test_too_few_custom_prompts_are_named_with_their_number(tmp_path):
    source = tmp_path / "mine.jsonl"
    source.write_text('{"prompt": "a b"}\n')
    known = {"path": str(source), "sha256": prompts_hash(["a b"])}

    with pytest.raises(SgmatrixError, match="holds 1 prompts, a load point needs 4") as caught:
        write_prompts(offer("custom", 4, **known), tmp_path / "p.jsonl")

    assert caught.value.code == "client_setup"
