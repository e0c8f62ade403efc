"""Read the dumps of SGLang's expert recorder: `counts.py TOP_K RANKS FILE...`, JSON on stdout.

A file of its own, without imports of ours: it is run by the engine's Python, which has torch.
For each file: `[[layer, tokens, activated, experts], ...]`, one entry per step and layer that
routed any token, in the order of the steps. Counts are summed over the ranks, which all route
the same tokens.

Source    sglang/srt/eplb/expert_distribution.py, mode `stat`: logical_count is [steps, layers,
          experts].
"""

import json
import sys

sys.path.pop(0)  # this folder: none of its modules is the engine's

import torch


def entries(path: str, top_k: int, ranks: int) -> list[list[int]]:
    """Return the entries of one dump."""
    count = torch.load(path, map_location="cpu", weights_only=False)["logical_count"]
    sums = count.sum(-1)
    activated = (count > 0).sum(-1)
    experts = count.shape[-1]
    return [
        [layer, int(sums[step, layer]) // (top_k * ranks), int(activated[step, layer]), experts]
        for step, layer in torch.nonzero(sums).tolist()
    ]


if __name__ == "__main__":
    top_k, ranks = int(sys.argv[1]), int(sys.argv[2])
    json.dump([entries(path, top_k, ranks) for path in sys.argv[3:]], sys.stdout)
