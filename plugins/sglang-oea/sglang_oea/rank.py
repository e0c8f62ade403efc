"""One scheduler rank: the hook that re-routes its decode steps, and what it knows of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from sglang_oea import __version__
from sglang_oea.capture import CaptureGuard
from sglang_oea.check import Checked, check_core, misread, sizes_up_to
from sglang_oea.cores import Core, core_for, fill_of, new_counter
from sglang_oea.modes import DECODE, Detector
from sglang_oea.refusal import refuse
from sglang_oea.router import Router, router_of
from sglang_oea.settings import Settings
from sglang_oea.support import plugin_sha256, sglang_version

USUAL_BATCH = 256
"""Largest batch that is checked where the server names none; larger ones are when they come."""


def capturing() -> bool:
    """Return whether the current stream records a CUDA graph."""
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


class Rank:
    """State of a rank. The hook runs on the scheduler's thread; `facts` is read by another."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.detector: Detector | None = None
        self.sha256 = plugin_sha256()  # of what was loaded, not of what lies there later
        self.guard = CaptureGuard()
        self.serving = False
        self.most_rows = USUAL_BATCH
        self.counter: torch.Tensor | None = None
        self.captured_calls = 0
        self.layers: set[int] = set()
        self.checked = Checked()
        self.cores: dict[tuple[Router, torch.dtype], Core] = {}
        self._checked_rows: dict[tuple[Router, torch.dtype], int] = {}
        self._read: set[int] = set()

    def decoding(self) -> bool:
        """Return whether the running forward is a decode step; False when that is not known."""
        return self.detector is not None and self.detector.mode() == DECODE

    def refuse(self, text: str, fix: str) -> None:
        """End the server; see `refusal.refuse`."""
        refuse(text, fix=fix, serving=self.serving)

    def refuse_format(self, form: str) -> None:
        """Refuse a router output that is made inside the MoE kernel."""
        self.refuse(
            f"the MoE runner takes {form} router output: it routes inside its kernel",
            "--moe-runner-backend triton, cutlass, flashinfer_cutlass or flashinfer_trtllm_routed",
        )

    def around_select(self, original: Callable[..., Any], *args: Any, **kw: Any) -> Any:
        """AROUND select_experts: what the inner hook cannot see."""
        if kw.get("dynamic_expert_bias") is not None:
            self.refuse("the model has a bias per token", "measure this model without OEA")
        output = original(*args, **kw)
        if type(output).__name__ == "StandardTopKOutputPacked":
            self.refuse(
                "the gate packs its ids before OEA can change them",
                "take SGLANG_OPT_LORA_FUSED_TOPK_PACK out of the environment",
            )
        return output

    def around_post_process(
        self, original: Callable[..., Any], topk_ids: torch.Tensor, topk_weights: torch.Tensor,
        topk_config: Any, router_logits: torch.Tensor, layer_id: int | None = None,
        num_token_non_padded: torch.Tensor | None = None, **kw: Any,
    ) -> Any:  # fmt: skip
        """AROUND _post_process_topk_ids: re-route decode steps, leave the rest alone.

        It runs after the engine's gate and before expert recording, EPLB's map and the padding
        mask, so all of them see the new ids.
        """
        decoding = self.decoding()
        # Compiled prefill is traced through here; a captured one has nothing to be checked for.
        if not torch.compiler.is_compiling() and (decoding or not capturing()):
            core = self._core(topk_config, topk_ids, router_logits)
            if decoding and topk_ids.shape[0]:
                topk_ids, topk_weights = self._reroute(
                    core, topk_ids, topk_weights, topk_config.correction_bias, router_logits,
                    layer_id, num_token_non_padded,
                )  # fmt: skip
        return original(
            topk_ids=topk_ids, topk_weights=topk_weights, topk_config=topk_config,
            router_logits=router_logits, layer_id=layer_id,
            num_token_non_padded=num_token_non_padded, **kw,
        )  # fmt: skip

    def _reroute(
        self, core: Core, ids: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor | None,
        logits: torch.Tensor, layer: int | None, valid: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        if self.settings.mask_padding and valid is None:
            assert self.detector is not None  # nothing is re-routed without one
            valid = self.detector.valid()
        if self.settings.mask_padding and valid is None:
            self.refuse(
                "OEA_MASK_PADDING=1, but the engine does not say which rows are padding",
                "capture a graph for every batch size in use, without OEA_MASK_PADDING",
            )
        in_capture = capturing()
        key = -1 if layer is None else layer
        if not in_capture:
            self._check_rows(core, logits, ids.shape[0])
            if key not in self._read:
                self._read.add(key)
                why = misread(core.router, logits, bias, ids, weights)
                if why is not None:
                    self.refuse(f"layer {layer}: {why}", "measure this model without OEA")
        elif ids.shape[0] > self._checked_rows[core.router, logits.dtype]:
            self.refuse(
                f"a graph of {ids.shape[0]} rows is captured before the core was checked on it",
                "measure without OEA, and report the engine's version",
            )
        assert self.counter is not None
        self.captured_calls += in_capture
        self.layers.add(key)
        return core(logits, bias, ids, weights, valid, self.counter)

    def _core(self, config: Any, ids: torch.Tensor, logits: torch.Tensor) -> Core:
        """Return the layer's core; at the first call of its kind check it on this device."""
        try:
            router = router_of(config, ids, logits)
        except ValueError as unknown:
            self.refuse(f"the router has {unknown}", "measure this model without OEA")
            raise
        known = self.cores.get((router, logits.dtype))
        if known is not None:
            return known
        if capturing():
            self.refuse(
                "the first call of the hook is inside a graph capture, where nothing can be "
                "checked", "measure without OEA, and report the engine's version",
            )  # fmt: skip
        device = ids.device
        if self.counter is None:
            self.counter = new_counter(device)
        core = core_for(router, self.settings, device.type, fill_of(self.settings, device.type))
        sizes = sizes_up_to(self.most_rows)
        self._check(core, sizes, logits)
        self._checked_rows[router, logits.dtype] = self.most_rows
        self.cores[router, logits.dtype] = core
        return core

    def _check_rows(self, core: Core, logits: torch.Tensor, rows: int) -> None:
        """Check a batch that is larger than the server said, when it first comes."""
        if rows > self._checked_rows[core.router, logits.dtype]:
            self._check(core, [rows], logits)
            self._checked_rows[core.router, logits.dtype] = rows

    def _check(self, core: Core, sizes: list[int], logits: torch.Tensor) -> None:
        try:
            result = check_core(core, sizes, dtype=logits.dtype, device=logits.device)
        except Exception as problem:  # noqa: BLE001 - a core that does not run is a wrong core
            result = Checked(ok=False, problem=f"it does not run: {problem!r}")
        self.checked = self.checked.and_then(result)
        if not result.ok:
            self.refuse(
                f"the {core.name} core is wrong on this device, router {core.router.kind}: "
                f"{result.problem}",
                "OEA_CORE=eager if this was triton; else measure without OEA",
            )

    def facts(self) -> dict[str, Any]:
        """Return what a proof says of this rank, without its nonce; it reads the device."""
        calls, tokens = (0, 0) if self.counter is None else self.counter.tolist()
        cores = list(self.cores.values())
        return {
            "calls": calls,
            "captured_calls": self.captured_calls,
            "tokens": tokens,
            "layers": sorted(self.layers),
            **self.settings.as_record(),
            "fill": cores[0].fill if cores else self.settings.fill,
            "core": cores[0].name if cores else None,
            "core_asked": self.settings.core,
            "router": sorted({core.router.kind for core in cores}),
            "device": None if self.counter is None else _device_name(self.counter.device),
            "detector": self.detector.name if self.detector else None,
            "plugin_version": __version__,
            "plugin_sha256": self.sha256,
            "sglang_version": sglang_version(),
            "check": self.checked.as_record(),
        }


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)
