"""The tiny model folder: same bytes, whole files, a tokenizer whose ids are whole words."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from sgmatrix.plan.recipes import RECIPES
from sgmatrix.plan.tiny_model import VOCAB_SIZE, model_config

FILES = ["config.json", "tokenizer.json", "tokenizer_config.json"]


@pytest.fixture
def model(tmp_path):
    RECIPES["tiny-qwen3-moe"].write(tmp_path / "tiny")
    return tmp_path / "tiny"


def read(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def test_holds_exactly_the_three_files_that_sglang_reads(model):
    assert sorted(path.name for path in model.iterdir()) == FILES


def test_a_second_run_and_another_folder_give_the_same_bytes(model, tmp_path):
    first = {name: (model / name).read_bytes() for name in FILES}

    RECIPES["tiny-qwen3-moe"].write(model)
    RECIPES["tiny-qwen3-moe"].write(tmp_path / "far" / "away")

    for name in FILES:
        assert (model / name).read_bytes() == first[name]
        assert (tmp_path / "far" / "away" / name).read_bytes() == first[name]


def test_eight_writers_at_once_leave_whole_files_and_nothing_else(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(RECIPES["tiny-qwen3-moe"].write, [tmp_path] * 8))

    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    assert read(tmp_path, "config.json") == model_config()


def test_files_are_as_readable_as_the_umask_allows(model):
    plain = model / "plain"
    plain.touch()
    modes = {stat.S_IMODE((model / name).stat().st_mode) for name in FILES}

    assert modes == {stat.S_IMODE(plain.stat().st_mode)}


def test_every_id_is_one_word_and_the_vocabulary_has_no_gap(model):
    vocab = read(model, "tokenizer.json")["model"]["vocab"]

    assert sorted(vocab.values()) == list(range(32_768))
    assert vocab["<|endoftext|>"] == 0
    assert vocab["<unk>"] == 1
    assert vocab["w00002"] == 2
    assert {"flour", "court", "the"} <= vocab.keys()  # of the topical prompts
    assert vocab["between"] == 32_767
    assert all(word.isascii() and not set(word) & set(" \t\n") for word in vocab)


def test_config_and_tokenizer_agree(model):
    config, tokenizer = read(model, "config.json"), read(model, "tokenizer.json")
    special = tokenizer["added_tokens"][0]

    assert config["vocab_size"] == len(tokenizer["model"]["vocab"]) == VOCAB_SIZE
    assert config["eos_token_id"] == special["id"] == 0
    assert read(model, "tokenizer_config.json")["eos_token"] == special["content"]
    assert (
        read(model, "tokenizer_config.json")["model_max_length"]
        == config["max_position_embeddings"]
        == 4096
    )


def test_two_ranks_can_share_the_model():
    config = model_config()

    for divided in ("num_attention_heads", "num_key_value_heads", "num_experts", "vocab_size"):
        assert config[divided] % 2 == 0, divided
    assert config["num_experts_per_tok"] < config["num_experts"]
