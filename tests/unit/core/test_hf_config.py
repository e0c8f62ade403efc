"""Shapes and formats from config.json and the quantisation files."""

import json
from pathlib import Path
from typing import Any

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.facts.files import folder_shape
from sgmatrix.core.facts.hf_config import shape_from_config
from sgmatrix.core.facts.model import Gqa, Mla, Moe, Precision
from sgmatrix.plan.tiny_model import model_config

QWEN3: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "vocab_size": 151936,
    "intermediate_size": 6144,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
GLM5: dict[str, Any] = {
    "model_type": "glm_moe_dsa",
    "hidden_size": 6144,
    "num_hidden_layers": 78,
    "vocab_size": 154880,
    "intermediate_size": 12288,
    "num_attention_heads": 64,
    "q_lora_rank": 2048,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64,
    "v_head_dim": 256,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3,
    "index_n_heads": 32,
    "index_head_dim": 128,
    "index_topk": 2048,
}


def refused(config: dict[str, Any], **more: Any) -> str:
    with pytest.raises(SgmatrixError) as error:
        shape_from_config(config, "M", **more)
    assert error.value.code == "facts_missing"
    return str(error.value)


def test_a_qwen3_moe() -> None:
    shape = shape_from_config(QWEN3, "Qwen3")
    assert shape.attention == Gqa(heads=32, kv_heads=4, head_dim=128)
    assert shape.moe == Moe(128, 8, 768, shared=0, shared_inter=768, first_dense=0)
    assert (shape.moe_layers, shape.dense_layers) == (48, 0)
    assert shape.precision == Precision()


def test_a_glm5() -> None:
    shape = shape_from_config(GLM5, "GLM-5")
    assert shape.attention == Mla(64, q_lora=2048, kv_lora=512, nope=192, rope=64, v=256)
    assert (shape.moe_layers, shape.dense_layers) == (75, 3)
    assert shape.indexer is not None
    assert (shape.indexer.heads, shape.indexer.dim, shape.indexer.topk) == (32, 128, 2048)


def test_a_query_that_is_not_factored() -> None:
    shape = shape_from_config({**GLM5, "q_lora_rank": None}, "lite")
    assert isinstance(shape.attention, Mla)
    assert shape.attention.q_lora is None


def test_a_dense_model_without_head_dim() -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "vocab_size": 128256,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "tie_word_embeddings": True,
    }
    shape = shape_from_config(config, "llama")
    assert shape.moe is None
    assert shape.tied
    assert shape.attention == Gqa(32, 8, 128)
    assert shape.dense_layers == 32


def test_the_tiny_model_is_read() -> None:
    shape = shape_from_config(model_config(), "tiny")
    assert shape.moe is not None
    assert (shape.moe.experts, shape.moe.top_k) == (16, 4)


def test_a_model_of_several_parts() -> None:
    inner = {key: value for key, value in QWEN3.items() if key != "torch_dtype"}
    shape = shape_from_config({"model_type": "qwen3_vl_moe", "text_config": inner}, "vl")
    assert shape.hidden == 2048


def test_unknown_architectures_are_refused_by_name() -> None:
    assert "model_type 'rwkv'" in refused({"model_type": "rwkv"})
    assert "model_type None" in refused({})


def test_all_missing_keys_are_named_at_once() -> None:
    config = {k: v for k, v in QWEN3.items() if k not in ("vocab_size", "num_experts_per_tok")}
    text = refused(config)
    assert "does not say vocab_size, num_experts_per_tok" in text


def test_sizes_of_nothing_are_named() -> None:
    text = refused({**QWEN3, "num_hidden_layers": 0, "hidden_size": 0})
    assert "does not say a hidden_size above 0, a num_hidden_layers above 0" in text


def test_a_quantisation_that_is_no_mapping_is_refused() -> None:
    text = refused({**QWEN3, "quantization_config": "fp8"})
    assert "no ceiling for quantization_config 'fp8'" in text


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"decoder_sparse_step": 2}, "dense and sparse layers by turns"),
        ({"mlp_only_layers": [3]}, "dense and sparse layers by turns"),
        ({"sliding_window": 4096}, "sliding-window attention"),
        ({"moe_layer_freq": 2}, "moe_layer_freq"),
    ],
)
def test_layers_that_differ_are_refused(more: dict[str, Any], text: str) -> None:
    assert text in refused({**QWEN3, **more})


def test_a_window_that_is_switched_off_is_none() -> None:
    shape_from_config({**QWEN3, "sliding_window": 4096, "use_sliding_window": False}, "M")


def test_fp8_in_blocks() -> None:
    config = {**GLM5, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128]}}
    got = shape_from_config(config, "M").precision
    assert (got.attention, got.routed, got.shared, got.dense) == ("fp8",) * 4
    assert (got.router, got.embedding, got.lm_head, got.kv) == ("bf16",) * 4


def test_modelopt_leaves_attention_out() -> None:
    """In the form of a published NVFP4 checkpoint: whole blocks by name, with a glob."""
    excluded = [f"model.layers.{i}.self_attn*" for i in range(78)] + ["lm_head"]
    quantisation = {
        "quantization": {
            "quant_algo": "NVFP4",
            "kv_cache_quant_algo": "FP8",
            "exclude_modules": excluded,
        }
    }
    got = shape_from_config(GLM5, "M", quantisation).precision
    assert (got.routed, got.shared, got.dense) == ("nvfp4",) * 3
    assert (got.attention, got.indexer, got.router, got.lm_head) == ("bf16",) * 4
    assert got.kv == "fp8"


def test_an_extra_layer_that_is_left_out_stands_for_no_other() -> None:
    quantisation = {
        "quantization": {"quant_algo": "NVFP4", "exclude_modules": ["model.layers.78*"]}
    }
    assert shape_from_config(GLM5, "M", quantisation).precision.attention == "nvfp4"


def test_names_and_expressions_leave_parts_out() -> None:
    lists = {
        "modules_to_not_convert": ["model.layers.24.self_attn"],
        "ignore": ["re:.*self_attn.*"],
    }
    for key, value in lists.items():
        config = {**QWEN3, "quantization_config": {"quant_method": "fp8", key: value}}
        got = shape_from_config(config, "M").precision
        assert (got.attention, got.routed) == ("bf16", "fp8"), key


def test_compressed_tensors() -> None:
    def config(kind: str, bits: int) -> dict[str, Any]:
        group = {"weights": {"type": kind, "num_bits": bits}}
        method = {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}}
        return {**QWEN3, "quantization_config": method}

    assert shape_from_config(config("float", 8), "M").precision.routed == "fp8"
    assert shape_from_config(config("int", 4), "M").precision.routed == "int4"
    assert "compressed-tensors groups" in refused(config("int", 3))


def test_unknown_quantisations_are_refused_by_name() -> None:
    config = {**QWEN3, "quantization_config": {"quant_method": "aqlm"}}
    assert "quantisation 'AQLM'" in refused(config)
    assert "dtype 'float8'" in refused({**QWEN3, "torch_dtype": "float8"})


def test_said_formats_win_and_must_exist() -> None:
    got = shape_from_config(QWEN3, "M", precision={"kv": "fp8"}).precision
    assert got == Precision(kv="fp8")
    assert "precision of 'kvs'" in refused(QWEN3, precision={"kvs": "fp8"})
    assert "format 'fp7'" in refused(QWEN3, precision={"kv": "fp7"})


def test_a_folder_with_both_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(QWEN3))
    assert folder_shape(tmp_path).precision.routed == "bf16"
    (tmp_path / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "FP8"}}')
    assert folder_shape(tmp_path).precision.routed == "fp8"
    (tmp_path / "hf_quant_config.json").write_text("{")
    with pytest.raises(SgmatrixError, match=r"hf_quant_config\.json"):
        folder_shape(tmp_path)
