"""What is known of the model before a server loads it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan import tiny_model
from sgmatrix.plan.campaign import Model


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


def model_facts(model: Model, project: Path, models_folder: Path) -> ModelFacts:
    """Return the facts of a campaign's model.

    Raises:
        SgmatrixError: `config_rejected` when the folder has no readable config.json.
    """
    if model.recipe is not None:
        made = [tiny_model.model_config(), tiny_model.tokenizer(), tiny_model.tokenizer_config()]
        digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()
        path = (models_folder / model.recipe).resolve()
        return ModelFacts(model.recipe, str(path), model.recipe, digest, tiny_model.VOCAB_SIZE)
    folder = project / Path(str(model.path)).expanduser()
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
    return ModelFacts(folder.name, str(folder), None, digest, vocab_size)
