"""What identifies a model before a server loads it."""

import json
from pathlib import Path

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan.model import model_facts
from sgmatrix.plan.parts import Model


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
