"""Models that the workflow makes: a config and a tokenizer, whose weights the server draws."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sgmatrix.core.files import write_json
from sgmatrix.plan import qwen3_30b_a3b, tiny_model


@dataclass(frozen=True)
class Recipe:
    """How one of them is made."""

    vocab_size: int
    config: Callable[[], dict[str, object]]
    tokenizer: Callable[[], dict[str, object]]
    tokenizer_config: Callable[[], dict[str, object]]
    identity: Callable[[], list[object]]
    """What tells it from others."""

    def digest(self) -> str:
        """Return the sha256 of what tells it from others."""
        return hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()

    def write(self, folder: Path) -> None:
        """Write the model folder; the same bytes on every run.

        A reader never sees half a file, and two writers at once leave whole ones.

        Args:
            folder: made if missing, with its parents; files of these names are replaced.
        """
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "config.json", self.config())
        write_json(folder / "tokenizer.json", self.tokenizer())
        write_json(folder / "tokenizer_config.json", self.tokenizer_config())


RECIPES: Mapping[str, Recipe] = {
    "tiny-qwen3-moe": Recipe(
        tiny_model.VOCAB_SIZE,
        tiny_model.model_config,
        tiny_model.tokenizer,
        tiny_model.tokenizer_config,
        tiny_model.identity,
    ),
    "qwen3-30b-a3b": Recipe(
        qwen3_30b_a3b.VOCAB_SIZE,
        qwen3_30b_a3b.model_config,
        qwen3_30b_a3b.tokenizer,
        qwen3_30b_a3b.tokenizer_config,
        qwen3_30b_a3b.identity,
    ),
}
