"""Measure the memory bandwidth of an engine's device: `bandwidth.py cpu|cuda`, bytes/s on stdout.

A file of its own, without imports of ours: it is run by the engine's Python, which has torch. It
copies a buffer that no cache holds; each byte is read once and written once. On a CPU one thread
copies, as one rank of the engine has one.
"""

import statistics
import sys
import time

sys.path.pop(0)  # this folder: none of its modules is the engine's

import torch

BUFFER_BYTES = 256 << 20
ROUNDS = 9


def measure(device: str) -> float:
    """Return the median over the rounds of bytes read and written per second."""
    torch.set_num_threads(1)
    source = torch.ones(BUFFER_BYTES // 4, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    seconds = []
    for _ in range(ROUNDS + 1):
        _await(device)
        begin = time.perf_counter()
        target.copy_(source)
        _await(device)
        seconds.append(time.perf_counter() - begin)
    return 2 * BUFFER_BYTES / statistics.median(seconds[1:])


def _await(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


if __name__ == "__main__":
    print(measure(sys.argv[1]))
