"""Experts of the stand-in: what each step opens, as SGLang's recorder counts it.

Each token of a step opens TOP_K of EXPERTS experts in each layer, drawn evenly. With OEA on it
draws K0 of them; the rest comes from what the step has opened, then from the next ids (the fill
`distinct` of sglang-oea). So the truth is known by construction.

Source    sglang 0.5.23, srt/eplb/expert_distribution.py, mode `stat`: counts [steps, layers,
          experts], summed over the ranks; a file for each dump.
Differs   the file is JSON: a stand-in needs no torch. `tests/standin_oea/torch.py` reads it.
"""

import json
import os
import time
from typing import Any

LAYERS, EXPERTS, TOP_K = 2, 16, 4
"""As of the model tiny-qwen3-moe."""
FOLDER_VARIABLE = "SGLANG_EXPERT_DISTRIBUTION_RECORDER_DIR"
SEED = 20251104


def own_experts() -> int:
    """Return how many experts a token draws by itself."""
    on = os.environ.get("OEA_ENABLE") == "1"
    return int(os.environ.get("OEA_K0", TOP_K)) if on else TOP_K


def opened(draw: Any, tokens: int, own: int) -> list[int]:
    """Return by expert how many tokens of a step open it in one layer."""
    counts = [0] * EXPERTS
    chosen = [draw.sample(range(EXPERTS), own) for _ in range(tokens)]
    union = sorted({expert for mine in chosen for expert in mine})
    spare = [expert for expert in range(EXPERTS) if expert not in union]
    for mine in chosen:
        others = [expert for expert in union if expert not in mine]
        for expert in [*mine, *others, *spare][:TOP_K]:
            counts[expert] += 1
    return counts


class Recorder:
    """Counts while it is told to; a dump holds what was counted since the last start."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.own = own_experts()
        self.on = False
        self.steps: list[list[list[int]]] = []
        self.draw: Any = None

    def start(self) -> None:
        import random  # 5 ms that only a probe pays

        self.draw = self.draw or random.Random(SEED)
        self.on, self.steps = True, []

    def stop(self) -> None:
        self.on = False

    def step(self, tokens: int, *, decode: bool = True) -> None:
        """Count one step; OEA leaves a prefill alone."""
        if not self.on or not tokens:
            return
        own = self.own if decode else TOP_K
        layers = [opened(self.draw, tokens, own) for _ in range(LAYERS)]
        # every rank routes the same tokens
        self.steps.append([[self.ranks * count for count in layer] for layer in layers])

    def dump(self) -> None:
        folder = os.environ.get(FOLDER_VARIABLE, "/tmp")
        name = f"{folder}/expert_distribution_recorder_{time.time()}.pt"
        with open(name, "w", encoding="ascii") as file:  # noqa: PTH123 - importing pathlib takes 6 ms
            json.dump({"logical_count": self.steps}, file)
