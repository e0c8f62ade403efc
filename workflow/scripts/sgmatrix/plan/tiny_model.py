"""The tiny Qwen3-MoE that the CPU engine serves: config and tokenizer, no weights.

SGLang draws the weights at random (`--load-format dummy`), so the model's text means
nothing; its server, scheduler and routing are the real ones.

The tokenizer is WordLevel over ASCII words, so every token id is whole text and streams
at once. A byte-level BPE toy holds incomplete UTF-8 back: the client then sees one late
chunk per request, TTFT is the whole latency and there are no inter-token latencies.

Source    keys of the `tokenizers` 0.23 file format and of transformers' Qwen3MoeConfig.
Not here  a generation_config.json: SGLang 0.5.23 starts without one, and samples as its own
          defaults or the request say.
"""

from sgmatrix.plan.topics import COMMON, TOPICS

VOCAB_SIZE = 32_768
"""Large, because a random prompt of the load client is a run of successive ids: with few ids
whole prompts repeat, and the prefix cache answers them."""
END_OF_TEXT = "<|endoftext|>"  # id 0
UNKNOWN = "<unk>"  # id 1
CONTEXT_LENGTH = 4096


def model_config() -> dict[str, object]:
    """Return config.json: 2 layers, 16 experts of which a token takes 4."""
    return {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "vocab_size": VOCAB_SIZE,
        "max_position_embeddings": CONTEXT_LENGTH,
        "num_hidden_layers": 2,
        "hidden_size": 128,
        "intermediate_size": 256,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "sliding_window": None,
        "use_sliding_window": False,
        "max_window_layers": 2,
        "num_experts": 16,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 64,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "output_router_logits": False,
        "router_aux_loss_coef": 0.001,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "initializer_range": 0.02,
        "use_cache": True,
    }


def tokenizer(vocab_size: int = VOCAB_SIZE) -> dict[str, object]:
    """Return tokenizer.json: one id per word, words split at white space."""
    words = [END_OF_TEXT, UNKNOWN, *(f"w{number:05d}" for number in range(2, vocab_size))]
    # prompts about topics are of these words; each is one token
    real = " ".join((*TOPICS.values(), COMMON)).split()
    words[-len(real) :] = real
    end_of_text = {
        "id": 0,
        "content": END_OF_TEXT,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [end_of_text],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": {word: number for number, word in enumerate(words)},
            "unk_token": UNKNOWN,
        },
    }


def tokenizer_config() -> dict[str, object]:
    """Return tokenizer_config.json, with the plainest chat template that keeps all text."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END_OF_TEXT,
        "pad_token": END_OF_TEXT,
        "unk_token": UNKNOWN,
        "model_max_length": CONTEXT_LENGTH,
        "clean_up_tokenization_spaces": False,
        "chat_template": "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} {% endfor %}",
    }


def identity() -> list[object]:
    """Return what tells this model from others."""
    return [model_config(), tokenizer(), tokenizer_config()]
