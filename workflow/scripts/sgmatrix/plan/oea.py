"""The OEA axis: what its values mean for a server, and where they cannot work.

OEA (opportunistic expert activation) is a plug-in of the engine that changes which experts a
decode step opens. It is switched by environment variables, which are part of the cell's key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan.closed import AxisValue
from sgmatrix.plan.model import ModelFacts
from sgmatrix.plan.parts import Oea

_OFF = (None, False, "off")

# Server flags that it does not go with, and why.
_NOT_WITH = {
    "enable_torch_compile": ": compiled decode steps do not run the plug-in",
    "enable_dp_attention": ": its padding rows would open experts",
    "enable_two_batch_overlap": ": each half of a batch would share by itself",
    "moe_a2a_backend": ": a rank sees only its own tokens",
    "speculative_algorithm": ": its steps are no decode steps",
}

# Flags that list the batch sizes of which decode graphs are captured.
_CAPTURED = ("cuda_graph_bs_decode", "cuda_graph_bs")

# Back ends that route inside their kernel: the plug-in's hook is never reached there.
_ROUTE_INSIDE = ("flashinfer_trtllm", "flashinfer_mxfp4", "triton_kernel", "triton_kernels")


def oea_of(value: AxisValue) -> Oea | None:
    """Return the settings of an axis value; None where OEA is off.

    Raises:
        SgmatrixError: `config_rejected` when it is neither off nor a mapping with `k0`.
    """
    if value in _OFF:
        return None
    try:
        return Oea.model_validate(value)
    except ValidationError as refusal:
        problem = refusal.errors()[0]
        key = ".".join(["axes.oea", *map(str, problem["loc"])])
        raise SgmatrixError(
            "config_rejected",
            f"{key}: {problem['msg']}, value {value!r}",
            fix="write off, or a mapping such as {k0: 4}",
        ) from None


def oea_text(value: AxisValue) -> str:
    """Return an axis value for cell ids and columns: `off`, `4`, `4-p0.9`."""
    oea = oea_of(value)
    if oea is None:
        return "off"
    more = oea.model_dump(exclude={"k0"}, exclude_none=True)
    return "-".join([str(oea.k0), *(_word(*one) for one in more.items())])


def oea_environment(value: AxisValue) -> dict[str, str]:
    """Return the variables that switch the plug-in."""
    oea = oea_of(value)
    if oea is None:
        return {"OEA_ENABLE": "0"}
    given = oea.model_dump(exclude_none=True)
    return {"OEA_ENABLE": "1"} | {f"OEA_{name.upper()}": _text(one) for name, one in given.items()}


def _word(name: str, given: object) -> str:
    """Return a setting for cell ids: a switch by its name alone."""
    return f"{name}{given}" if given is not True else name


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def oea_record(value: AxisValue, device: str) -> dict[str, Any]:
    """Return what a launch has to prove: whether OEA is on, and the settings of its ranks."""
    oea = oea_of(value)
    if oea is None:
        return {"on": False, "settings": {}}
    settings = oea.model_dump(exclude_none=True) | {"fill": oea.fill or default_fill(device)}
    if settings.get("core") == "auto":
        del settings["core"]
    return {"on": True, "settings": settings}


def default_fill(device: str) -> str:
    """Return what the plug-in puts into unused slots where the campaign does not say.

    The CPU engine's kernel counts an expert once per token, so that repeating one fails there.
    """
    return "distinct" if device == "cpu" else "repeat"


def padding_obstacle(oea: Oea, flags: Mapping[str, Any], widest: int) -> str | None:
    """Return why padding rows of CUDA graphs would open experts; None where they cannot.

    A batch is padded to the next size that was captured, and with plain tensor parallelism the
    engine does not say which rows are padding. Above the largest captured size nothing is padded.

    Args:
        oea: the settings.
        flags: of the server.
        widest: requests in a batch at the most.
    """
    if oea.mask_padding or flags.get("disable_cuda_graph") is True:
        return None
    given = next((flags[name] for name in _CAPTURED if flags.get(name)), None)
    sizes = {size for size in given if isinstance(size, int)} if isinstance(given, list) else set()
    if sizes and set(range(1, min(widest, max(sizes)) + 1)) <= sizes:
        return None
    said = f"captured are {sorted(sizes)}" if sizes else "which are captured is not given"
    return (
        f"oea: padding rows of CUDA graphs would open experts, and {said}; fix: capture every "
        f"batch size up to {widest} ({_CAPTURED[0]}, in older versions {_CAPTURED[1]}), write "
        "oea.mask_padding: true where the engine tells padding apart, or disable_cuda_graph"
    )


def oea_obstacles(
    oea: Oea, flags: Mapping[str, Any], model: ModelFacts, *, device: str, widest: int = 1
) -> Iterator[str]:
    """Yield why a cell cannot run with OEA, from its flags, the model's shape and its load."""
    if device != "cpu" and (why := padding_obstacle(oea, flags, widest)):
        yield why
    runner = flags.get("moe_runner_backend")
    if runner in _ROUTE_INSIDE:
        yield (
            f"oea needs routing outside the kernel, moe_runner_backend = {runner} routes inside "
            "it; allowed: triton, cutlass, flashinfer_cutlass, flashinfer_trtllm_routed"
        )
    for flag, why in _NOT_WITH.items():
        if flags.get(flag) not in (None, False, "none"):
            yield f"oea does not work with {flag}{why}"
    if model.experts_per_token is not None and oea.k0 > model.experts_per_token:
        yield (
            f"oea k0 = {oea.k0} is over the {model.experts_per_token} experts that a token of "
            f"{model.name} opens"
        )
    if device == "cpu" and oea.core == "triton":
        yield "oea core = triton needs a GPU; take it out, or write eager"
    if device == "cpu" and oea.fill not in (None, "distinct"):
        yield (
            f"oea fill = {oea.fill} does not work on the CPU engine, whose kernel counts an expert "
            "once per token; take it out, or write distinct"
        )
