"""The environment of an engine's processes: the caller's, cleaned, then what is declared."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

# Variables that can change what is measured; an engine sees only the ones that its campaign
# names, so that a number does not depend on the shell that happened to run it.
_CHANGES_NUMBERS = (
    "CUDA_DEVICE",
    "CUDA_LAUNCH",
    "CUDA_MODULE",
    "CUDA_VISIBLE",
    "FLASHINFER_",
    "GLIBC_TUNABLES",
    "GOMP_",
    "KMP_",
    "LD_PRELOAD",
    "MALLOC_",
    "MKL_",
    "NCCL_",
    "OEA_",
    "OMP_",
    "OPENBLAS_",
    "PYTORCH_",
    "SGLANG_",
    "SGL_",
    "TORCH",
    "TRITON_",
)
# Variables of the program that runs, which would change which code an interpreter runs.
_NOT_INHERITED = (*_CHANGES_NUMBERS, "PYTHON", "SNAKEMAKE", "VIRTUAL_ENV", "MLFLOW_")

TOKEN_VARIABLE = "SGMATRIX_TOKEN"  # noqa: S105 - a name, no password
"""Marks every process of a server, wherever it went, as one of a certain warden's."""


def kept_from_engines() -> list[str]:
    """Return the variables of this shell that could change numbers and are not passed on."""
    return sorted(name for name in os.environ if name.startswith(_CHANGES_NUMBERS))


def engine_environment(declared: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an engine's processes."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    return {**kept, **declared}


def server_environment(
    declared: Mapping[str, str],
    devices: Sequence[str],
    ranks: int,
    token: str,
    unset: Sequence[str] = (),
) -> dict[str, str]:
    """Return the environment of a server: where it may run, and its token.

    On GPUs that is their list, numbered as nvidia-smi does. On the CPU it is one core per
    rank, which SGLang demands as soon as there are more ranks than NUMA nodes; a campaign that
    declares SGLANG_CPU_OMP_THREADS_BIND itself wins. What is `unset` is not inherited.
    """
    gpus = [name.removeprefix("gpu-") for name in devices if name.startswith("gpu-")]
    place = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(gpus)}
    if not gpus:
        cores = sorted(os.sched_getaffinity(0))
        bind = "|".join(str(cores[rank % len(cores)]) for rank in range(ranks))
        place["SGLANG_CPU_OMP_THREADS_BIND"] = bind
    inherited = {n: text for n, text in engine_environment(place).items() if n not in unset}
    return {**inherited, **declared, TOKEN_VARIABLE: token}
