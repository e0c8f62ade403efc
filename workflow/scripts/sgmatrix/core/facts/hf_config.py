"""The shape of a model from its Hugging Face config.json and the quantisation beside it.

Only architectures whose bytes are known are read; another is refused with what is missing, since
a ceiling of a shape that was guessed is no ceiling.
Sources: the `config.json` keys of the `transformers` classes of each `model_type`; `modelopt`'s
`hf_quant_config.json`; compressed-tensors' `quantization_config`.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.facts.formats import FORMATS, Format
from sgmatrix.core.facts.model import Gqa, Indexer, Mla, Moe, Precision, Shape

_GQA = {"llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen2_moe", "qwen3_moe", "glm4_moe"}
_MLA = {"deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "glm_moe_dsa"}
KNOWN = frozenset(_GQA | _MLA)

_DENSE = {"llama", "mistral", "qwen2", "qwen3"}

_PARTS: dict[str, tuple[str, ...]] = {
    # a part counts as left out of the quantisation where all of its modules are
    "attention": ("self_attn.q_proj", "self_attn.o_proj", "self_attn.kv_b_proj"),
    "indexer": ("self_attn.indexer.wk", "self_attn.indexer.wq_b"),
    "routed": ("mlp.experts.0.gate_proj",),
    "shared": ("mlp.shared_experts.gate_proj",),
    "dense": ("mlp.gate_proj",),
}
"""Router, embedding and output projection stay as they are by all known methods."""


def shape_from_config(
    config: Mapping[str, Any],
    name: str,
    quantisation: Mapping[str, Any] | None = None,
    precision: Mapping[str, str] | None = None,
) -> Shape:
    """Return the shape that a `config.json` describes.

    Args:
        config: the parsed `config.json`; the text part of a model of several.
        name: of the model.
        quantisation: parsed `hf_quant_config.json`, where there is one.
        precision: formats by part that win over what the files say.

    Raises:
        SgmatrixError: `facts_missing`, naming the architecture, or the keys that are missing.
    """
    text = config.get("text_config")
    config = {**config, **text} if isinstance(text, Mapping) else config
    kind = config.get("model_type")
    if kind not in KNOWN:
        raise SgmatrixError(
            "facts_missing",
            f"model {name}: no ceiling for model_type {kind!r}; known: {', '.join(sorted(KNOWN))}",
            fix="name a file of config/models in model.facts, if its shape is one of these",
        )
    _refuse_mixed(config, name)
    read = _Reader(config, name)
    shape = Shape(
        name=name,
        hidden=read("hidden_size"),
        layers=read("num_hidden_layers"),
        vocabulary=read("vocab_size"),
        dense_inter=read("intermediate_size") if kind != "mixtral" else 0,
        attention=_mla(read) if kind in _MLA else _gqa(read),
        moe=None if kind in _DENSE else _moe(read, str(kind)),
        indexer=_indexer(read) if read.has("index_topk") else None,
        tied=bool(config.get("tie_word_embeddings", False)),
    )
    for key in ("hidden_size", "num_hidden_layers", "vocab_size", "num_attention_heads"):
        if config.get(key) == 0:
            read.missing.append(f"a {key} above 0")
    read.refuse_missing()
    said = _precision(config, name, quantisation)
    return replace(shape, precision=_with(said, precision or {}, name))


class _Reader:
    """Whole numbers of a config; what is missing is collected, to be told at once."""

    def __init__(self, config: Mapping[str, Any], name: str) -> None:
        self.config, self.name, self.missing = config, name, list[str]()

    def has(self, key: str) -> bool:
        return self.config.get(key) is not None

    def __call__(self, *keys: str, default: int | None = None) -> int:
        for key in keys:
            value = self.config.get(key)
            if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
                return value
        if default is None:
            self.missing.append(" or ".join(keys))
        return default or 0

    def refuse_missing(self) -> None:
        if self.missing:
            raise SgmatrixError(
                "facts_missing",
                f"model {self.name}: config.json does not say {', '.join(self.missing)}",
                fix="add them, or name a file of config/models in model.facts",
            )


def _refuse_mixed(config: Mapping[str, Any], name: str) -> None:
    """Refuse what makes layers differ in ways that the shape does not hold."""
    odd = []
    if config.get("decoder_sparse_step", 1) not in (None, 1) or config.get("mlp_only_layers"):
        odd.append("dense and sparse layers by turns")
    if config.get("moe_layer_freq", 1) not in (None, 1):
        odd.append("moe_layer_freq")
    if config.get("sliding_window") and config.get("use_sliding_window", True):
        odd.append("sliding-window attention")
    if odd:
        raise SgmatrixError(
            "facts_missing",
            f"model {name}: no ceiling for {' and '.join(odd)}",
            fix="leave the ceiling out, or describe a model without it in config/models",
        )


def _mla(read: _Reader) -> Mla:
    return Mla(
        heads=read("num_attention_heads"),
        q_lora=read("q_lora_rank") if read.has("q_lora_rank") else None,
        kv_lora=read("kv_lora_rank"),
        nope=read("qk_nope_head_dim"),
        rope=read("qk_rope_head_dim"),
        v=read("v_head_dim"),
    )


def _gqa(read: _Reader) -> Gqa:
    heads = read("num_attention_heads")
    even = read("hidden_size") // heads if heads else 0
    return Gqa(
        heads=heads,
        kv_heads=read("num_key_value_heads", default=heads),
        head_dim=read("head_dim", default=even),
    )


def _indexer(read: _Reader) -> Indexer:
    return Indexer(read("index_n_heads"), read("index_head_dim"), read("index_topk"))


def _moe(read: _Reader, kind: str) -> Moe:
    inter = read("moe_intermediate_size", *(["intermediate_size"] if kind == "mixtral" else []))
    shared = read("n_shared_experts", default=1 if kind == "qwen2_moe" else 0)
    return Moe(
        experts=read("n_routed_experts", "num_experts", "num_local_experts"),
        top_k=read("num_experts_per_tok"),
        inter=inter,
        shared=shared,
        shared_inter=read("shared_expert_intermediate_size", default=inter),
        first_dense=read("first_k_dense_replace", default=0),
    )


def _precision(
    config: Mapping[str, Any], name: str, quantisation: Mapping[str, Any] | None
) -> Precision:
    """Return the formats that config.json and the file beside it say."""
    base = _base_format(config, name)
    plain = Precision(**dict.fromkeys(_WEIGHTS, base), kv=base)
    given = (quantisation or {}).get("quantization") or config.get("quantization_config")
    if not given:
        return plain
    if not isinstance(given, Mapping):
        raise _no_format(name, f"quantization_config {given!r}")
    format_, left_out, kv = _method(given, name)
    parts: dict[str, Format] = {
        part: format_
        for part, modules in _PARTS.items()
        if not all(_is_left_out(f"{_layer(config, part)}.{one}", left_out) for one in modules)
    }
    return replace(plain, **parts, **({"kv": kv} if kv else {}))


def _layer(config: Mapping[str, Any], part: str) -> str:
    """Return the name of a layer that has a part; one that stands for all, not a special one."""
    number = 0 if part == "dense" else int(config["num_hidden_layers"]) // 2
    return f"model.layers.{number}"


_WEIGHTS = tuple(one.name for one in fields(Precision) if one.name not in ("kv", "index_kv"))


def _base_format(config: Mapping[str, Any], name: str) -> Format:
    text = str(config.get("dtype") or config.get("torch_dtype") or "bfloat16")
    known: dict[str, Format] = {"bfloat16": "bf16", "float16": "bf16", "float32": "fp32"}
    if text not in known:
        raise _no_format(name, f"dtype {text!r}")
    return known[text]


def _no_format(name: str, what: str) -> SgmatrixError:
    return SgmatrixError(
        "facts_missing",
        f"model {name}: no ceiling for {what}",
        fix="say the formats in the precision of a file of config/models",
    )


def _method(given: Mapping[str, Any], name: str) -> tuple[Format, Sequence[str], Format | None]:
    """Return the format of quantised weights, the modules left out, and the KV cache's format."""
    left_out = [
        str(module)
        for key in ("exclude_modules", "ignore", "modules_to_not_convert", "ignored_layers")
        for module in given.get(key) or []
    ]
    kv_text = str(given.get("kv_cache_quant_algo") or "").upper()
    kv: Format | None = "fp8" if kv_text.startswith("FP8") else None
    text = str(given.get("quant_algo") or given.get("quant_method") or "").upper()
    formats: dict[str, Format] = {
        "NVFP4": "nvfp4",
        "MXFP4": "mxfp4",
        "FP8": "fp8",
        "FP8_PB_WO": "fp8",
        "FBGEMM_FP8": "fp8",
        "W8A8_INT8": "int8",
    }
    if text in formats:
        return formats[text], left_out, kv
    if text in ("GPTQ", "AWQ") and given.get("bits") in (4, 8):
        return ("int4" if given["bits"] == 4 else "int8"), left_out, kv
    if text == "COMPRESSED-TENSORS":
        return _compressed(given, name), left_out, kv
    raise _no_format(name, f"quantisation {text or dict(given)!r}")


def _compressed(given: Mapping[str, Any], name: str) -> Format:
    groups = [group.get("weights") or {} for group in (given.get("config_groups") or {}).values()]
    kinds = {(group.get("type"), group.get("num_bits")) for group in groups}
    formats: dict[tuple[Any, Any], Format] = {
        ("float", 8): "fp8",
        ("float", 4): "nvfp4",
        ("int", 8): "int8",
        ("int", 4): "int4",
    }
    if len(kinds) != 1 or (kind := next(iter(kinds))) not in formats:
        raise _no_format(name, f"compressed-tensors groups {sorted(map(str, kinds))}")
    return formats[kind]


def _is_left_out(module: str, patterns: Iterable[str]) -> bool:
    """Tell whether a module is left out of the quantisation.

    Lists name modules or what holds them (`lm_head`, `model.layers.3.self_attn`), globs
    (`model.layers.3.self_attn*`), or regular expressions (`re:.*self_attn.*`).
    """
    for pattern in patterns:
        if pattern.startswith("re:"):
            if re.match(pattern[3:], module):
                return True
        elif fnmatch.fnmatchcase(module, pattern) or f".{pattern}." in f".{module}.":
            return True
    return False


def _with(precision: Precision, given: Mapping[str, str], name: str) -> Precision:
    """Return the precision with some parts said otherwise."""
    parts = {one.name for one in fields(Precision)}
    if bad := sorted(set(given) - parts):
        raise SgmatrixError(
            "facts_missing",
            f"model {name}: precision of {bad[0]!r} is not one of {', '.join(sorted(parts))}",
        )
    if wrong := sorted(text for text in given.values() if text not in FORMATS):
        raise SgmatrixError(
            "facts_missing",
            f"model {name}: format {wrong[0]!r} is not one of {', '.join(FORMATS)}",
        )
    return replace(precision, **given)  # type: ignore[arg-type]
