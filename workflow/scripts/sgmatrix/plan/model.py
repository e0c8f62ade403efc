"""What is known of the model before a server loads it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.facts.files import MODELS, model_file, model_shape
from sgmatrix.core.facts.formats import BYTES
from sgmatrix.plan.parts import Model
from sgmatrix.plan.recipes import RECIPES


@dataclass(frozen=True)
class ModelFacts:
    """Where the model is and what identifies it."""

    name: str
    path: str
    recipe: str | None
    digest: str
    """sha256 over config.json and the names and sizes of the weight files."""
    vocab_size: int
    """Token ids of random prompts stay below this; a larger id kills the server."""
    heads: int | None = None
    """Attention heads; None: config.json does not say."""
    experts: int | None = None
    """Routed experts of a layer."""
    experts_per_token: int | None = None
    """Routed experts that one token opens."""
    expert_bytes: float | None = None
    """Weights of one routed expert in one layer."""
    context_length: int | None = None
    """Tokens of prompt and answer together that the model takes."""
    facts: str | None = None
    """File of config/models that says its shape."""
    absent: bool = False
    """Its folder is not there; what is said of it is from the facts file."""


_PARAMETER_BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0}
_NVFP4_BYTES = 0.5625
"""4 bits, and 8 bits of scale for every 16 parameters."""


def _parameter_bytes(config: Mapping[str, Any]) -> float | None:
    """Return the bytes of one expert parameter as it is stored; None: it is not said."""
    quantised = config.get("quantization_config") or {}
    if not isinstance(quantised, Mapping):
        return None
    method = str(quantised.get("quant_algo") or quantised.get("quant_method") or "").lower()
    if "nvfp4" in method or "fp4" in method:
        return _NVFP4_BYTES
    if "fp8" in method:
        return 1.0
    bits = quantised.get("bits")
    if isinstance(bits, int):
        return bits / 8
    if method:
        return None
    return _PARAMETER_BYTES.get(str(config.get("dtype") or config.get("torch_dtype")))


def _shape(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what config.json says of the model's shape, under the names of its families."""
    text = config.get("text_config") if isinstance(config.get("text_config"), dict) else {}
    both = {**(text or {}), **config}

    def first(*names: str) -> int | None:
        values = (both.get(name) for name in names)
        return next((v for v in values if isinstance(v, int) and not isinstance(v, bool)), None)

    hidden, inner = first("hidden_size"), first("moe_intermediate_size")
    each = _parameter_bytes(both)
    return {
        # gate, up and down projection
        "expert_bytes": 3 * hidden * inner * each if hidden and inner and each else None,
        "heads": first("num_attention_heads"),
        "experts": first("num_experts", "n_routed_experts", "num_local_experts"),
        "experts_per_token": first("num_experts_per_tok", "moe_topk", "top_k_experts"),
        "context_length": first("max_position_embeddings"),
    }


def model_facts(model: Model, project: Path, models_folder: Path) -> ModelFacts:
    """Return the facts of a campaign's model.

    Raises:
        SgmatrixError: `config_rejected` when the folder has no readable config.json.
    """
    if model.recipe is not None:
        made = RECIPES[model.recipe]
        return ModelFacts(
            model.recipe,
            str((models_folder / model.recipe).resolve()),
            model.recipe,
            made.digest(),
            made.vocab_size,
            **_shape(made.config()),
        )
    folder = project / Path(str(model.path)).expanduser()
    if model.facts is not None and not folder.exists():
        return _from_facts(model.facts, folder, project)
    try:
        text = (folder / "config.json").read_bytes()
        config = json.loads(text)
        vocab_size = int(config.get("vocab_size") or config["text_config"]["vocab_size"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SgmatrixError(
            "config_rejected",
            f"model.path = {model.path}: no config.json with a vocab_size ({error})",
            fix="name the folder that holds the model's config.json",
        ) from None
    weights = sorted((f.name, f.stat().st_size) for f in folder.glob("*.safetensors*"))
    digest = hashlib.sha256(text + json.dumps(weights).encode()).hexdigest()
    shape = _shape(config)
    return ModelFacts(
        folder.name, str(folder), None, digest, vocab_size, **shape, facts=model.facts
    )


def _from_facts(name: str, folder: Path, project: Path) -> ModelFacts:
    """Return what a facts file says of a model whose folder is on another machine."""
    file = model_file(project / MODELS, name)
    digest = hashlib.sha256(json.dumps(file.config, sort_keys=True).encode()).hexdigest()
    shape = _shape(file.config)
    known, moe = model_shape(file), model_shape(file).moe
    if moe is not None:
        shape["expert_bytes"] = 3 * known.hidden * moe.inter * BYTES[known.precision.routed]
    return ModelFacts(
        file.name, str(folder), None, digest, known.vocabulary, **shape, facts=name, absent=True
    )
