"""Run SGLang's Python load client: `python_client.py BURSTINESS ARG...`.

A file of its own, without imports of ours: it is run by the client engine's Python.
Two things are other than in `python -m sglang.benchmark.serving`:

- Gamma arrivals. The client waits between requests for times from `numpy.random.exponential`; a
  gamma distribution of the same mean is Poisson at burstiness 1, comes in bursts below and evenly
  above, as in `vllm bench serve --burstiness`.
- Where no request succeeded, it writes its line, with what the server said to each. It would end
  with an IndexError in the percentiles of no latencies.
"""

import math
import runpy
import sys
from typing import Any

sys.path.pop(0)  # this folder: none of its modules is the client's

import numpy as np


def main(burstiness: float, arguments: list[str]) -> None:
    percentile = np.percentile

    def gamma(scale: float = 1.0, size: int | None = None) -> object:
        return np.random.gamma(burstiness, scale / burstiness, size)  # noqa: NPY002 - the client's

    def percentile_of_any(values: Any, q: float) -> Any:
        return percentile(values, q) if np.size(values) else math.nan

    if burstiness != 1:
        np.random.exponential = gamma  # type: ignore[assignment]
    np.percentile = percentile_of_any  # type: ignore[assignment]
    sys.argv = ["sglang.benchmark.serving", *arguments]
    runpy.run_module("sglang.benchmark.serving", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
