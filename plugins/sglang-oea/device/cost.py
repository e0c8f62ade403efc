"""What a core costs per layer, inside a CUDA graph of 48 layers.

`python device/cost.py` prints JSON: µs per layer of the gate alone, and what each core adds to
it, as the median over rounds of replays; `rounds` keeps each round, so that the spread can be
seen. The gate is plain torch (softmax or sigmoid, top-k, renormalise), not SGLang's, and is
only subtracted. It needs torch, triton and the package. Run device/check.py first: the cost of
a wrong kernel is of no interest.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from sglang_oea.cores import core_for, new_counter
from sglang_oea.router import Router
from sglang_oea.settings import Settings

LAYERS = 48
BATCHES = (1, 8, 16, 32, 64, 256)
REPLAYS = 20
ROUTERS = {
    "qwen3": Router(128, 8),
    "glm5": Router(256, 8, "sigmoid", biased=True),
    "deepseek-v3": Router(256, 8, "sigmoid", biased=True, groups=8, top_groups=4),
}

Step = Callable[[torch.Tensor], object]


def gate(router: Router, bias: torch.Tensor | None) -> Callable[[torch.Tensor], tuple]:
    """Return a gate that gives ids and weights of a layer's logits; groups are left out."""

    def run(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = logits.float()
        scores = x.softmax(-1) if router.scoring == "softmax" else x.sigmoid()
        ids = (scores if bias is None else scores + bias).topk(router.top_k).indices
        weights = scores.gather(1, ids)
        return ids.int(), weights / weights.sum(-1, keepdim=True)

    return run


def graph_of(step: Step, layers: torch.Tensor) -> torch.cuda.CUDAGraph:
    """Capture one step over all layers, after two warm-ups."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            step(layers[0])
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for logits in layers:
            step(logits)
    return graph


def us_per_layer(graph: torch.cuda.CUDAGraph) -> float:
    """Return the median of replays, in µs per layer."""
    for _ in range(3):
        graph.replay()
    pairs = []
    for _ in range(REPLAYS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in pairs) * 1e3 / LAYERS


def measure(router: Router, batch: int, k0: int, rounds: int) -> dict[str, object]:
    """Return µs per layer of a router and a batch size; cores take turns within a round."""
    noise = torch.Generator(device="cuda").manual_seed(batch)
    layers = torch.randn(LAYERS, batch, router.experts, device="cuda", generator=noise).bfloat16()
    bias = torch.zeros(router.experts, device="cuda") if router.biased else None
    alone = gate(router, bias)
    counter = new_counter("cuda")
    steps: dict[str, Step] = {"gate": alone}
    for name in ("triton", "eager"):
        core = core_for(router, Settings(k0, core=name), "cuda", "repeat")

        def step(logits: torch.Tensor, core: Callable = core) -> object:
            ids, weights = alone(logits)
            return core(logits, bias, ids, weights, None, counter)

        steps[name] = step
    graphs = {name: graph_of(step, layers) for name, step in steps.items()}
    seen: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(rounds):
        for name, graph in graphs.items():
            seen[name].append(us_per_layer(graph))
    before = counter.tolist()
    graphs["triton"].replay()
    torch.cuda.synchronize()
    counted = counter.tolist()[0] - before[0]
    if counted != LAYERS:
        raise SystemExit(f"a replay of {LAYERS} layers counted {counted} calls")
    base = statistics.median(seen["gate"])
    added = {
        f"{name}_added_us": round(statistics.median(seen[name]) - base, 3)
        for name in ("triton", "eager")
    }
    spread = {name: [round(x, 3) for x in values] for name, values in seen.items()}
    return {"batch": batch, "gate_us": round(base, 3), **added, "rounds": spread}


def main() -> int:
    """Print the JSON; return 2 without a GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--k0", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--routers", nargs="+", choices=list(ROUTERS), default=list(ROUTERS))
    args = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device", file=sys.stderr)
        return 2
    import triton

    result = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "layers": LAYERS,
        "k0": args.k0,
        "unit": "us per layer",
        "routers": {
            name: [measure(ROUTERS[name], batch, args.k0, args.rounds) for batch in BATCHES]
            for name in args.routers
        },
    }
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
