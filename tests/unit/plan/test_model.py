"""What identifies a model before a server loads it."""

import json
from pathlib import Path

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.facts.files import model_file
from sgmatrix.plan.model import model_facts
from sgmatrix.plan.parts import Model
from sgmatrix.plan.recipes import RECIPES

MODELS_FOLDER = Path(__file__).resolve().parents[3] / "config/models"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "models" / "GLM"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"vocab_size": 151552}))
    (folder / "model-00001.safetensors").write_bytes(b"x" * 10)
    return folder


def facts(folder, project=Path("/")):
    return model_facts(Model(path=str(folder)), project, Path("/models"))


def test_a_folder_is_known_by_its_config_and_its_weight_files(folder, tmp_path):
    known = facts(folder)

    assert (known.name, known.path, known.recipe) == ("GLM", str(folder), None)
    assert known.vocab_size == 151552
    assert facts("models/GLM", project=tmp_path) == known


@pytest.mark.parametrize("change", ["config", "size", "another file"])
def test_another_model_has_another_digest(folder, change):
    before = facts(folder).digest
    if change == "config":
        (folder / "config.json").write_text(json.dumps({"vocab_size": 151552, "x": 1}))
    elif change == "size":
        (folder / "model-00001.safetensors").write_bytes(b"x" * 11)
    else:
        (folder / "model-00002.safetensors").write_bytes(b"")

    assert facts(folder).digest != before


def test_a_moved_folder_is_the_same_model(folder, tmp_path):
    before = facts(folder).digest
    moved = folder.rename(tmp_path / "moved")

    assert facts(moved).digest == before


def test_the_vocabulary_of_a_model_of_several_parts_is_that_of_its_text(folder):
    (folder / "config.json").write_text(json.dumps({"text_config": {"vocab_size": 7}}))

    assert facts(folder).vocab_size == 7


@pytest.mark.parametrize("content", [None, "{", "[]", "{}", '{"vocab_size": "many"}'])
def test_a_folder_without_a_readable_config_is_refused_by_name(folder, content):
    (folder / "config.json").unlink()
    if content is not None:
        (folder / "config.json").write_text(content)

    with pytest.raises(SgmatrixError, match=f"model.path = {folder}: no config.json") as caught:
        facts(folder)

    assert caught.value.code == "config_rejected"


def test_a_recipe_is_known_before_it_is_made(tmp_path):
    known = model_facts(Model(recipe="tiny-qwen3-moe"), tmp_path, tmp_path / "models")

    assert known.path == str(tmp_path / "models/tiny-qwen3-moe")
    assert (known.recipe, known.vocab_size) == ("tiny-qwen3-moe", 32_768)
    assert not (tmp_path / "models").exists()


def test_the_tiny_recipe_keeps_its_digest_so_that_no_cell_is_measured_again(tmp_path):
    known = model_facts(Model(recipe="tiny-qwen3-moe"), tmp_path, tmp_path / "models")

    assert known.digest.startswith("f52e4bfe58a36b90")


def test_a_recipe_has_the_shape_of_the_published_model(tmp_path):
    known = model_facts(Model(recipe="qwen3-30b-a3b"), tmp_path, tmp_path / "models")
    facts = model_file(MODELS_FOLDER, "qwen3-30b-a3b")

    assert known.vocab_size == facts.config["vocab_size"] == 151_936
    assert (known.experts, known.experts_per_token, known.heads) == (128, 8, 32)
    assert known.expert_bytes == 3 * 2048 * 768 * 2
    config = RECIPES["qwen3-30b-a3b"].config()
    assert {key: config[key] for key in facts.config} == facts.config

    RECIPES["qwen3-30b-a3b"].write(tmp_path / "made")
    vocab = json.loads((tmp_path / "made/tokenizer.json").read_text())["model"]["vocab"]
    assert sorted(vocab.values()) == list(range(151_936))


# --- weights of one expert -----------------------------------------------------------------------

SHAPE = {"vocab_size": 7, "hidden_size": 100, "moe_intermediate_size": 10}  # 3 x 1000 parameters


@pytest.mark.parametrize(
    ("config", "want"),
    [
        ({"torch_dtype": "bfloat16"}, 6000.0),
        ({"dtype": "float16"}, 6000.0),
        ({"dtype": "float32", "torch_dtype": "bfloat16"}, 12000.0),  # the newer name
        ({"torch_dtype": "bfloat16", "quantization_config": {"quant_method": "fp8"}}, 3000.0),
        ({"quantization_config": {"quant_algo": "FP8", "quant_method": "modelopt"}}, 3000.0),
        # 4 bits, and 8 bits of scale for 16 of them: 0.5625 bytes each
        ({"quantization_config": {"quant_algo": "NVFP4", "quant_method": "modelopt"}}, 1687.5),
        ({"quantization_config": {"quant_method": "modelopt_fp4"}}, 1687.5),
        ({"quantization_config": {"quant_method": "awq", "bits": 4}}, 1500.0),
        ({"quantization_config": {"quant_method": "gptq", "bits": 8}}, 3000.0),
        # nothing is guessed from the type of what is not quantised
        ({"torch_dtype": "bfloat16", "quantization_config": {"quant_method": "other"}}, None),
        ({"torch_dtype": "auto"}, None),
        ({}, None),
        ({"quantization_config": {}, "torch_dtype": "bfloat16"}, 6000.0),
        ({"moe_intermediate_size": None, "torch_dtype": "bfloat16"}, None),
        ({"hidden_size": None, "torch_dtype": "bfloat16"}, None),
    ],
)
def test_an_expert_s_bytes_are_known_from_its_shape_and_how_it_is_stored(folder, config, want):
    (folder / "config.json").write_text(json.dumps({**SHAPE, **config}))

    assert facts(folder).expert_bytes == want


def test_an_expert_of_a_model_of_several_parts_is_that_of_its_text(folder):
    text = {**SHAPE, "torch_dtype": "bfloat16"}
    (folder / "config.json").write_text(json.dumps({"text_config": text}))

    assert facts(folder).expert_bytes == 6000.0
