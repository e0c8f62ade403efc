"""Measure the memory bandwidth of an engine's devices by copies, in bytes/s, on stdout.

    bandwidth.py DEVICE            one number, of a buffer that no cache holds
    bandwidth.py DEVICE BYTES...   JSON: `torch`; `copies`, of each device [[bytes, median, best]]

A file of its own, without imports of ours: it is run by the engine's Python, which has torch.
DEVICE is cpu or cuda. Each byte is read once and written once. On a CPU one thread copies, as one
rank of the engine has one; of GPUs each visible one is measured, one after the other.
"""

import json
import statistics
import sys
import time

sys.path.pop(0)  # this folder: none of its modules is the engine's

import torch

BUFFER_BYTES = 256 << 20
ROUNDS = 9
ENOUGH_S = 0.02
"""Of small buffers more rounds are taken, until they have lasted this long."""


def measure(device: str) -> float:
    """Return the median over the rounds of bytes read and written per second."""
    return copy_rates(device, BUFFER_BYTES)[0]


def copy_rates(device: str, size: int) -> tuple[float, float]:
    """Return bytes read and written per second, median and best of the rounds."""
    torch.set_num_threads(1)
    source = torch.ones(size // 4, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    seconds: list[float] = []
    while len(seconds) <= ROUNDS or sum(seconds) < ENOUGH_S:
        _await(device)
        begin = time.perf_counter()
        target.copy_(source)
        _await(device)
        seconds.append(time.perf_counter() - begin)
    kept = seconds[1:]  # the first one touches new pages
    return 2 * size / statistics.median(kept), 2 * size / min(kept)


def _await(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize(device)


def _devices(kind: str) -> list[str]:
    return [kind] if kind == "cpu" else [f"{kind}:{n}" for n in range(torch.cuda.device_count())]


if __name__ == "__main__":
    if not sys.argv[2:]:
        print(measure(sys.argv[1]))
    else:
        sizes = sorted(int(text) for text in sys.argv[2:])
        copies = [
            [[size, *copy_rates(device, size)] for size in sizes]
            for device in _devices(sys.argv[1])
        ]
        json.dump({"torch": torch.__version__, "copies": copies}, sys.stdout)
