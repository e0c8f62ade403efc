"""GPUs through NVML: which one a name means, and what each says, value by value.

A value that a GPU does not have is left out and never asked for again; a GPU that is lost is
left alone, the others go on. Each kind of trouble is told once.
Indices are NVML's: by PCI bus, as nvidia-smi counts, whatever CUDA_VISIBLE_DEVICES says.
Not here  what to do when a call hangs (`gpu_thread`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sgmatrix.node.telemetry.gpu_values import FACTS, VALUES, Nvml, Value

_NEVER = {"NVMLError_NotSupported", "NVMLError_FunctionNotFound", "NVMLError_NoPermission"}
_NEVER |= {"AttributeError"}  # a library of another version lacks the call
_LOST = {"NVMLError_GpuIsLost", "NVMLError_ResetRequired", "NVMLError_GpuNotFound"}
_UUID_LETTERS = 4
"""Of a UUID as it is written, `GPU-` and `MIG-` are no beginning that tells one from another."""


@dataclass(frozen=True)
class Trouble:
    """Something that cannot be measured."""

    source: str
    """`nvml`, or `gpu` and its name."""
    what: str
    """The value that is missing; empty for all of them."""
    kind: str
    """NVML's name of the error, or a word of ours."""
    detail: str = ""

    def record(self) -> dict[str, str]:
        return {key: text for key, text in asdict(self).items() if text}


@dataclass(frozen=True)
class Reading:
    """What one GPU said."""

    at_s: float
    """Monotonic time just before the first question."""
    t_s: float
    """The same moment in unix time."""
    values: dict[str, Any]


@dataclass(slots=True)
class _Device:
    handle: Any
    unknown: set[str]
    """Values that it does not have."""
    lost: bool = False


def import_pynvml() -> Nvml:
    """Return NVIDIA's own binding; it loads the driver's library at `nvmlInit`."""
    import pynvml

    return pynvml


class Gpus:
    """The GPUs of one server; for one thread."""

    def __init__(
        self,
        names: Sequence[str],
        tell: Callable[[Trouble], None],
        load: Callable[[], Nvml] = import_pynvml,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is loaded yet.

        Args:
            names: NVML indices, UUIDs, or the beginning of a UUID.
            tell: hears of each kind of trouble once.
            load: gives the module.
            clock: monotonic.
        """
        self._names, self._load, self._clock = names, load, clock
        self._tell = tell
        self._told: set[tuple[str, str, str]] = set()
        self._nvml: Nvml = None
        self._devices: dict[str, _Device] = {}
        """By index as text; a MIG part by its UUID."""

    def open(self) -> dict[str, Any]:
        """Load NVML and find the GPUs; return their facts.

        Returns:
            `driver`, `nvml` and `gpus`; empty when NVML cannot be used.
        """
        try:
            nvml = self._load()
            nvml.nvmlInit()
        except Exception as error:  # noqa: BLE001 - whatever NVML raises, the rest is sampled
            self._trouble("nvml", "", error)
            return {}
        self._nvml = nvml
        for name in self._names:
            try:
                handle = self._find(name)
                self._devices[self._key(name, handle)] = _Device(handle, set())
            except Exception as error:  # noqa: BLE001 - as above
                self._trouble(f"gpu {name}", "", error)
        facts: dict[str, Any] = {
            "gpus": {
                key: self._ask(key, device, FACTS, "fact ") for key, device in self._devices.items()
            }
        }
        for fact, call in (
            ("driver", "nvmlSystemGetDriverVersion"),
            ("nvml", "nvmlSystemGetNVMLVersion"),
        ):
            try:
                facts[fact] = getattr(nvml, call)()
            except Exception as error:  # noqa: BLE001 - as above
                self._trouble("nvml", fact, error)
        return facts

    def read(self) -> dict[str, Reading]:
        """Return what each GPU says now; one that says nothing is left out."""
        found: dict[str, Reading] = {}
        for key, device in self._devices.items():
            at_s, t_s = self._clock(), time.time()
            values = self._ask(key, device, VALUES)
            if values:
                found[key] = Reading(at_s, t_s, values)
        return found

    def _find(self, name: str) -> Any:
        nvml = self._nvml
        if name.isdecimal():
            return nvml.nvmlDeviceGetHandleByIndex(int(name))
        try:
            return nvml.nvmlDeviceGetHandleByUUID(name)
        except nvml.NVMLError:
            handles = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
            hits = [h for h in handles if str(nvml.nvmlDeviceGetUUID(h)).startswith(name)]
            if len(hits) != 1 or len(name) <= _UUID_LETTERS:
                raise
            return hits[0]

    def _key(self, name: str, handle: Any) -> str:
        """Return the index as text, as nvidia-smi shows it; a part of a card has none."""
        if name.isdecimal() or name.startswith("MIG-"):
            return name
        return str(self._nvml.nvmlDeviceGetIndex(handle))

    def _ask(
        self, key: str, device: _Device, values: Sequence[Value], prefix: str = ""
    ) -> dict[str, Any]:
        answers: dict[str, Any] = {}
        for value in values:
            what = prefix + value.name
            if device.lost or what in device.unknown:
                continue
            try:
                answers.update(value.asks(self._nvml, device.handle))
            except Exception as error:  # noqa: BLE001 - as above: one value less
                kind = type(error).__name__
                if kind in _NEVER:
                    device.unknown.add(what)
                if kind in _LOST:
                    device.lost = True
                    what = ""
                self._trouble(f"gpu {key}", what, error)
        # the half of a reading that a dying GPU still gave is none
        return {} if device.lost else answers

    def _trouble(self, source: str, what: str, error: Exception) -> None:
        trouble = Trouble(source, what, type(error).__name__, str(error))
        if (key := (source, what, trouble.kind)) not in self._told:
            self._told.add(key)
            self._tell(trouble)
