"""The architecture of Qwen3-30B-A3B with random weights: config and tokenizer, nothing else.

Served with `--load-format dummy` it costs a server what the published model does, and nothing has
to be downloaded; its text means nothing, and its routers are all alike.

Source    config.json of Qwen/Qwen3-30B-A3B, keys of transformers' Qwen3MoeConfig.
"""

from __future__ import annotations

from sgmatrix.plan import tiny_model

VOCAB_SIZE = 151_936
CONTEXT_LENGTH = 40_960


def model_config() -> dict[str, object]:
    """Return config.json: 48 layers, 128 experts of which a token takes 8."""
    return {
        **tiny_model.model_config(),
        "vocab_size": VOCAB_SIZE,
        "max_position_embeddings": CONTEXT_LENGTH,
        "num_hidden_layers": 48,
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "rope_theta": 1e6,
        "max_window_layers": 48,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
    }


def tokenizer() -> dict[str, object]:
    """Return tokenizer.json: one id per word, as that of the tiny model."""
    return tiny_model.tokenizer(VOCAB_SIZE)


def tokenizer_config() -> dict[str, object]:
    """Return tokenizer_config.json."""
    return {**tiny_model.tokenizer_config(), "model_max_length": CONTEXT_LENGTH}


def identity() -> list[object]:
    """Return what tells this model from others; all words would take a tenth of a second."""
    return [model_config(), {"words": VOCAB_SIZE}, tokenizer_config()]
