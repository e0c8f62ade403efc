"""A stand-in for the module `pynvml`: GPUs whose calls answer or fail as a test says."""

from types import SimpleNamespace


class NVMLError(Exception):
    """The base of all of NVML's errors."""


class NVMLError_NotSupported(NVMLError):  # noqa: N801 - NVIDIA's name
    """This GPU has no such value."""


class NVMLError_GpuIsLost(NVMLError):  # noqa: N801 - NVIDIA's name
    """The GPU has fallen off the bus."""


class NVMLError_InvalidArgument(NVMLError):  # noqa: N801 - NVIDIA's name
    """There is no such GPU."""


class NVMLError_FunctionNotFound(NVMLError):  # noqa: N801 - NVIDIA's name
    """The driver is older than the binding."""


class NVMLError_Unknown(NVMLError):  # noqa: N801 - NVIDIA's name
    """Anything else."""


ANSWERS = {
    "PowerUsage": 350_500,
    "TotalEnergyConsumption": 123_456_789,
    "EnforcedPowerLimit": 600_000,
    "PowerManagementDefaultLimit": 700_000,
    "UtilizationRates": SimpleNamespace(gpu=97, memory=41),
    "MemoryInfo": SimpleNamespace(used=90_000 * 2**20),
    "ClockInfo": {1: 1980, 2: 3201},
    "Temperature": 61,
    "CurrentClocksEventReasons": 0x4 | 0x40,
    "CurrentClocksThrottleReasons": 0x20,
    "CurrPcieLinkGeneration": 5,
    "CurrPcieLinkWidth": 16,
    "MaxPcieLinkGeneration": 5,
    "MaxPcieLinkWidth": 16,
    "ComputeRunningProcesses": [SimpleNamespace(pid=77), SimpleNamespace(pid=5)],
    "Name": "NVIDIA H200",
}


class Module:
    """`pynvml` on a machine with these UUIDs, in the order of their buses."""

    NVMLError = NVMLError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    nvmlMemory_v2 = 0x2000028  # noqa: N815 - NVIDIA's name

    def __init__(self, *uuids, parts=()):
        self.uuids, self.parts = list(uuids), list(parts)
        self.answers = {}
        """(uuid, call) -> another answer, or an error to raise."""
        self.calls = []

    def __getattr__(self, name):
        what = name.removeprefix("nvmlDeviceGet")
        if what == name or (what not in ANSWERS):
            raise AttributeError(name)

        def call(uuid, *arguments):
            self.calls.append((uuid, what, *arguments))
            answer = self.answers.get((uuid, what), ANSWERS[what])
            if isinstance(answer, Exception):
                raise answer
            return answer[arguments[0]] if isinstance(answer, dict) else answer

        return call

    def nvmlInit(self):  # noqa: N802 - NVIDIA's name
        pass

    def nvmlSystemGetDriverVersion(self):  # noqa: N802
        return "610.43"

    def nvmlSystemGetNVMLVersion(self):  # noqa: N802
        return "13.610.43"

    def nvmlDeviceGetCount(self):  # noqa: N802
        return len(self.uuids)

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        if index >= len(self.uuids):
            raise NVMLError_InvalidArgument("Invalid Argument")
        return self.uuids[index]

    def nvmlDeviceGetHandleByUUID(self, uuid):  # noqa: N802
        if uuid not in [*self.uuids, *self.parts]:
            raise NVMLError_InvalidArgument("Invalid Argument")
        return uuid

    def nvmlDeviceGetUUID(self, handle):  # noqa: N802
        return handle

    def nvmlDeviceGetIndex(self, handle):  # noqa: N802
        return self.uuids.index(handle)
