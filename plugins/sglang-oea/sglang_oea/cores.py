"""Which core serves a router, and one way to call either.

`OEA_CORE=auto` is triton on CUDA and eager elsewhere. What triton cannot serve on CUDA is
refused unless eager is asked for by name: the eager core costs more than OEA gains there, so
taking it silently would measure something else.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from sglang_oea import eager
from sglang_oea.refusal import refuse
from sglang_oea.router import Router
from sglang_oea.settings import Settings

Reroute = Callable[..., tuple[torch.Tensor, torch.Tensor]]


def new_counter(device: torch.device | str) -> torch.Tensor:
    """Return the device counter: [2] int64, decode calls and tokens of this rank."""
    with torch.inference_mode(mode=False):
        return torch.zeros(2, dtype=torch.int64, device=device)


@dataclass(frozen=True)
class Core:
    """A core bound to a router and settings.

    Call it with (logits, bias, ids, weights, valid, counter); shapes as in `eager.reroute`.
    """

    name: str
    router: Router
    settings: Settings
    fill: str
    reroute: Reroute

    def __call__(
        self,
        logits: torch.Tensor,
        bias: torch.Tensor | None,
        ids: torch.Tensor,
        weights: torch.Tensor,
        valid: torch.Tensor | None,
        counter: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self.reroute(logits, bias, ids, weights, valid, counter)


def fill_of(settings: Settings, device_type: str) -> str:
    """Return what unused slots hold: as asked, else distinct on the CPU and repeat elsewhere.

    SGLang's CPU kernel counts an expert once per token and refuses -1.
    """
    fill = settings.fill or ("distinct" if device_type == "cpu" else "repeat")
    if device_type == "cpu" and fill != "distinct":
        refuse(
            f"OEA_FILL={fill} on the CPU engine, whose kernel counts an expert once per token",
            fix="set OEA_FILL=distinct, or leave it out",
        )
    return fill


def core_for(router: Router, settings: Settings, device_type: str, fill: str) -> Core:
    """Return the core that serves a router on a kind of device.

    Raises:
        Refused: k0 over the router's k, or a core that cannot serve what is asked.
    """
    if settings.k0 > router.top_k:
        refuse(
            f"OEA_K0={settings.k0} of a model with {router.top_k} experts per token",
            fix=f"set it to {router.top_k} or less",
        )
    size = router.experts // router.groups
    if router.experts % router.groups or (router.biased and router.grouped and size < 2):
        refuse(
            f"{router.experts} experts in {router.groups} groups",
            fix="measure this model without OEA",
        )
    name = settings.core
    if name == "auto":
        name = "triton" if device_type == "cuda" else "eager"
    if name == "eager":
        call = partial(_counted, router=router, settings=settings, fill=fill)
        return Core(name, router, settings, fill, call)
    if device_type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        refuse(f"OEA_CORE=triton on device {device_type}", fix="leave OEA_CORE out")
    try:
        from sglang_oea import triton_core
    except Exception as problem:  # noqa: BLE001 - whatever stops the import, the arm would be off
        refuse(
            f"the Triton core does not import: {problem!r}", fix="mend Triton, or OEA_CORE=eager"
        )
    why = triton_core.cannot_serve(router, settings)
    if why is not None:
        refuse(
            f"the Triton core does not serve {why}, router {router.kind}",
            fix="ask for OEA_CORE=eager, whose cost on a GPU is over its gain",
        )
    call = partial(triton_core.reroute, router=router, settings=settings, fill=fill)
    return Core(name, router, settings, fill, call)


def _counted(
    logits: torch.Tensor,
    bias: torch.Tensor | None,
    ids: torch.Tensor,
    weights: torch.Tensor,
    valid: torch.Tensor | None,
    counter: torch.Tensor,
    **bound: object,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Run the eager core and count on the device, so that a replayed graph counts too."""
    counter[0].add_(1)
    counter[1].add_(ids.shape[0] if valid is None else valid.reshape(()).to(torch.int64))
    return eager.reroute(logits, bias, ids, weights, valid, **bound)
