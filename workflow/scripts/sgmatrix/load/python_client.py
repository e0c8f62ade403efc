"""Run SGLang's Python load client with gamma arrivals: `python_client.py BURSTINESS ARG...`.

A file of its own, without imports of ours: it is run by the client engine's Python. The client
waits between requests for times from `numpy.random.exponential`; a gamma distribution of the
same mean is Poisson at burstiness 1, comes in bursts below and evenly above, as in
`vllm bench serve --burstiness`.
"""

import runpy
import sys

sys.path.pop(0)  # this folder: none of its modules is the client's

import numpy as np


def main(burstiness: float, arguments: list[str]) -> None:
    def gamma(scale: float = 1.0, size: int | None = None) -> object:
        return np.random.gamma(burstiness, scale / burstiness, size)  # noqa: NPY002 - the client's

    np.random.exponential = gamma  # type: ignore[assignment]
    sys.argv = ["sglang.benchmark.serving", *arguments]
    runpy.run_module("sglang.benchmark.serving", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
