"""Which forward mode is running, and does the router's output reach the plug-in at all?

Two detectors, chosen by what the installed SGLang has, and held against what its version is
known to have (support.SUPPORTED):

context  0.5.23: ForwardContext.moe_num_token_non_padded is a bound method of the running
         ForwardBatch, also while a decode graph is captured. The output's format is checked
         when a TopK is bound to its runner back end.
hooks    0.5.15.post1 to 0.5.17: ForwardContext holds no batch, so the mode is noted around
         ModelRunner._forward_raw and DecodeCudaGraphRunner.capture_one_shape (two warm-ups,
         then the capture). The format is checked on what TopK.forward_cuda returns. How many
         rows of a batch are no padding is noted there too: Qwen3-MoE does not pass it on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_TOPK = "sglang.srt.layers.moe.topk"
_RUNNER = "sglang.srt.model_executor"
BIND = f"{_TOPK}.TopK.bind_runner_backend"
FORWARD = f"{_TOPK}.TopK.forward_cuda"
RAW = f"{_RUNNER}.model_runner.ModelRunner._forward_raw"
CAPTURE = f"{_RUNNER}.runner.decode_cuda_graph_runner.DecodeCudaGraphRunner.capture_one_shape"

DECODE = "DECODE"

Hook = tuple[str, Callable[..., Any], str]
"""Target, function, name of the HookType."""


@dataclass(frozen=True)
class Detector:
    """How the running mode is found.

    Attributes:
        name: context or hooks.
        mode: returns the name of the running ForwardMode, None when none is known.
        hooks: what must be registered for it.
        valid: returns the number of rows that are no padding, one integer on the device, where
            the engine knows it and does not pass it to the router; None where it does not.
    """

    name: str
    mode: Callable[[], str | None]
    hooks: tuple[Hook, ...]
    valid: Callable[[], Any] = lambda: None


def context_mode() -> str | None:
    """Return the running mode of 0.5.23."""
    from sglang.srt.model_executor.forward_context import get_forward_context, has_forward_context

    if not has_forward_context():
        return None
    batch = getattr(get_forward_context().moe_num_token_non_padded, "__self__", None)
    return None if batch is None else str(batch.forward_mode.name)


class NotedMode:
    """The running forward as the hooks of older versions note it; forwards may be nested."""

    def __init__(self) -> None:
        self.now: tuple[str | None, Any] = None, None

    def mode(self) -> str | None:
        return self.now[0]

    def valid(self) -> Any:
        """Return how many rows are no padding; in a capture the buffer that replays fill."""
        return self.now[1]

    def around_raw(
        self, original: Callable[..., Any], runner: Any, batch: Any, *args: Any, **kw: Any
    ) -> Any:
        """AROUND ModelRunner._forward_raw."""
        now = batch.forward_mode.name, getattr(batch, "num_token_non_padded", None)
        return self._during(now, original, runner, batch, *args, **kw)

    def around_capture(
        self, original: Callable[..., Any], runner: Any, *args: Any, **kw: Any
    ) -> Any:
        """AROUND DecodeCudaGraphRunner.capture_one_shape."""
        buffers = getattr(runner, "buffers", None)
        valid = getattr(buffers, "num_token_non_padded", None)
        now = runner.capture_forward_mode.name, valid
        return self._during(now, original, runner, *args, **kw)

    def _during(
        self, now: tuple[str, Any], original: Callable[..., Any], *args: Any, **kw: Any
    ) -> Any:
        before, self.now = self.now, now
        try:
            return original(*args, **kw)
        finally:
            self.now = before


def detect(refuse_format: Callable[[str], None]) -> Detector:
    """Return the detector that fits the installed SGLang.

    Args:
        refuse_format: is called with the name of an output format that OEA cannot reach.
    """

    def after_bind(_: Any, topk: Any, *_args: Any, **_kw: Any) -> None:
        form = topk.topk_config.output_format
        if form is not None and form.name != "STANDARD":
            refuse_format(form.name)
        # Ids that the gate packs for the kernel would be those from before the plug-in.
        topk.topk_config.fused_gate_packed_ids = False

    def after_forward(output: Any, *_args: Any, **_kw: Any) -> None:
        if output.format.name != "STANDARD":
            refuse_format(output.format.name)

    try:
        from sglang.srt.model_executor.forward_context import ForwardContext

        fields = set(ForwardContext.__dataclass_fields__)
    except ImportError:
        fields = set()
    if "moe_num_token_non_padded" in fields:
        return Detector("context", context_mode, ((BIND, after_bind, "AFTER"),))
    noted = NotedMode()
    hooks: tuple[Hook, ...] = (
        (FORWARD, after_forward, "AFTER"),
        (RAW, noted.around_raw, "AROUND"),
        (CAPTURE, noted.around_capture, "AROUND"),
    )
    return Detector("hooks", noted.mode, hooks, noted.valid)
