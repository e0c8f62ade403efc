"""Cells that cannot be."""

import json

import pytest

from builders import campaign
from sgmatrix.plan.limits import impossibilities
from sgmatrix.plan.model import ModelFacts, model_facts
from sgmatrix.plan.parts import Model

GLM5 = ModelFacts("glm-5", "/m", None, "d", 151552, heads=64, experts=256, context_length=202752)
LOAD = campaign().load


def why(model=GLM5, load=LOAD, **flags):
    return list(impossibilities(flags, model, load))


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"tp_size": 8},
        {"tp_size": 8, "ep_size": 8},
        {"tp_size": 8, "dp_size": 8, "ep_size": 8, "enable_dp_attention": True},
        {"tp_size": 4, "pp_size": 2},
    ],
)
def test_what_can_be_is_not_refused(flags):
    assert why(**flags) == []


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"tp_size": 3}, "64 attention heads of glm-5 are not divisible by 3 shards"),
        ({"tp_size": 6, "ep_size": 3}, "256 experts of glm-5 are not divisible by ep_size 3"),
        ({"tp_size": 4, "ep_size": 8}, "tp_size 4 is not divisible by ep_size 8"),
        (
            {"tp_size": 8, "dp_size": 3, "enable_dp_attention": True},
            "tp_size 8 is not divisible by dp_size 3, as DP attention needs",
        ),
        (
            {"context_length": 19},
            "input_len 16 + load.output_len 4 is over the context length 19",
        ),
    ],
)
def test_what_cannot_be_is_named_with_its_numbers(flags, words):
    assert any(words in text for text in why(**flags))


def test_replicas_do_not_share_heads_but_dp_attention_does():
    odd = ModelFacts("odd", "/m", None, "d", 9, heads=6)

    assert why(odd, tp_size=2, dp_size=2) == []
    assert why(odd, tp_size=12, dp_size=2, enable_dp_attention=True) == []
    assert why(odd, tp_size=8, dp_size=2, enable_dp_attention=True) == [
        "6 attention heads of odd are not divisible by 4 shards"
    ]


def test_nothing_is_said_of_what_the_model_does_not_tell():
    assert why(ModelFacts("unknown", "/m", None, "d", 9), tp_size=7) == []


SHAPE = {"num_attention_heads": 8, "max_position_embeddings": 64}


@pytest.mark.parametrize(
    "config",
    [
        {"vocab_size": 9, **SHAPE, "n_routed_experts": 16},
        {"vocab_size": 9, "text_config": {**SHAPE, "num_experts": 16}},
    ],
)
def test_the_shape_is_read_from_config_json(tmp_path, config):
    (tmp_path / "config.json").write_text(json.dumps(config))

    facts = model_facts(Model(path=str(tmp_path)), tmp_path, tmp_path)

    assert (facts.heads, facts.experts, facts.context_length) == (8, 16, 64)
