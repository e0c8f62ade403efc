"""What is asked of each GPU: which NVML call, which unit, under which name. Data, no state.

`power_w` is the driver's mean over the last second on Ampere (but GA100) and newer cards, and
momentary on older ones; `energy_j` counts since the driver was loaded, from Volta on.
Source  NVIDIA's NVML API reference; names of calls and bits as in nvidia-ml-py 13.
Not here  PCIe throughput: each of its two readings blocks for 20 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Nvml = Any
"""The module `pynvml`, or what stands in for it; it ships no types."""

THROTTLE_REASONS: Mapping[int, str] = {
    0x001: "gpu_idle",
    0x002: "applications_clocks",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal",
    0x040: "hw_thermal",
    0x080: "hw_power_brake",
    0x100: "display",
    0x200: "board_limit",
    0x400: "reliability",
}
"""Bits of nvmlDeviceGetCurrentClocksEventReasons."""


def throttle_reasons(mask: int) -> list[str]:
    """Return the names of the bits that are set; an unknown bit by its number."""
    bits = [1 << place for place in range(mask.bit_length()) if mask >> place & 1]
    return [THROTTLE_REASONS.get(bit, f"unknown_{bit:#x}") for bit in bits]


@dataclass(frozen=True)
class Value:
    """One question to a GPU."""

    name: str
    """Of its value, or of the first of several."""
    asks: Callable[[Nvml, Any], Mapping[str, Any]]
    """From the module and a handle to values by name."""


_ABSENT = {
    "AttributeError",  # the binding has no such call
    "NVMLError_FunctionNotFound",  # the driver has none
    "NVMLError_ArgumentVersionMismatch",
}


def _first(*asks: Callable[[], Any]) -> Any:
    """Return the first answer; calls are renamed over the years, on both sides."""
    for ask in asks[:-1]:
        try:
            return ask()
        except Exception as error:
            if type(error).__name__ not in _ABSENT:
                raise
    return asks[-1]()


def _throttle(nvml: Nvml, handle: Any) -> dict[str, Any]:
    mask = _first(
        lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle),
        lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),  # before driver 535
    )
    return {"throttle_reasons": throttle_reasons(mask)}


def _utilization(nvml: Nvml, handle: Any) -> dict[str, Any]:
    rates = nvml.nvmlDeviceGetUtilizationRates(handle)
    return {
        "utilization_share": rates.gpu / 100,
        "memory_utilization_share": rates.memory / 100,
    }


def _memory(nvml: Nvml, handle: Any) -> dict[str, Any]:
    info = _first(
        # as nvidia-smi: without what the driver keeps for itself
        lambda: nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2),
        lambda: nvml.nvmlDeviceGetMemoryInfo(handle),
    )
    return {"memory_used_mib": info.used / 2**20}


def _temperature(nvml: Nvml, handle: Any) -> dict[str, Any]:
    celsius = _first(
        lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        # from CUDA 14 on the only one
        lambda: nvml.nvmlDeviceGetTemperatureV(handle, nvml.NVML_TEMPERATURE_GPU),
    )
    return {"temperature_c": celsius}


def _pids(nvml: Nvml, handle: Any) -> dict[str, Any]:
    return {"pids": sorted(one.pid for one in nvml.nvmlDeviceGetComputeRunningProcesses(handle))}


def _one(name: str, call: str, *arguments: str, unit: float | None = None) -> Value:
    """Return the question of one call; `arguments` are names of constants of the module."""

    def ask(nvml: Nvml, handle: Any) -> dict[str, Any]:
        number = getattr(nvml, call)(handle, *(getattr(nvml, text) for text in arguments))
        return {name: number if unit is None else number * unit}

    return Value(name, ask)


VALUES: tuple[Value, ...] = (
    _one("power_w", "nvmlDeviceGetPowerUsage", unit=1e-3),
    _one("energy_j", "nvmlDeviceGetTotalEnergyConsumption", unit=1e-3),
    _one("power_limit_w", "nvmlDeviceGetEnforcedPowerLimit", unit=1e-3),
    Value("utilization_share", _utilization),
    Value("memory_used_mib", _memory),
    _one("sm_mhz", "nvmlDeviceGetClockInfo", "NVML_CLOCK_SM"),
    _one("memory_mhz", "nvmlDeviceGetClockInfo", "NVML_CLOCK_MEM"),
    Value("temperature_c", _temperature),
    Value("throttle_reasons", _throttle),
    _one("pcie_gen", "nvmlDeviceGetCurrPcieLinkGeneration"),
    _one("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
    Value("pids", _pids),
)
"""Asked at every tick; power and its counter first, close to the time that the reading bears."""

FACTS: tuple[Value, ...] = (
    _one("uuid", "nvmlDeviceGetUUID"),
    _one("name", "nvmlDeviceGetName"),
    _one("power_limit_w", "nvmlDeviceGetEnforcedPowerLimit", unit=1e-3),
    _one("power_limit_default_w", "nvmlDeviceGetPowerManagementDefaultLimit", unit=1e-3),
    _one("pcie_gen_max", "nvmlDeviceGetMaxPcieLinkGeneration"),
    _one("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth"),
)
"""Asked once."""
