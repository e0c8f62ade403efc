"""The rules of log triage, as data: what a line of a server's log means, and what to try.

Texts are those of SGLang 0.5.x, of torch, NCCL, Triton and uvicorn under it, and of vLLM, whose
logs look much alike. Not here: how lines are read and which of several fatal ones is the root
(`node.triage`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from sgmatrix.core.reasons import REASONS

Phase = Literal["weights", "kv", "runtime"]
"""How far a rank has come: loading weights, making its KV pool, or past both."""

HARMLESS = "harmless"
CAUSE, CONSEQUENCE, ECHO = 0, 1, 2
"""Tiers: why it died; that it died; what others print because it died."""


@dataclass(frozen=True)
class Rule:
    """What a line means whose text, behind its time stamp, matches the pattern."""

    pattern: re.Pattern[str]
    reason: str
    """A reason class, or `harmless`."""
    advice: str | None = None
    """One line: what to try."""
    needles: tuple[str, ...] = ()
    """Texts of which a line that matches has one; none for lines that name an exception."""
    phase: Phase | None = None
    """Only for a rank that has come so far."""
    tier: int = CAUSE
    counter: str | None = None
    """Of a harmless line: the name under which it is counted."""

    def means(self, text: str, phase: Phase) -> bool:
        return self.phase in (None, phase) and self.pattern.search(text) is not None

    def __post_init__(self) -> None:
        assert (self.reason == HARMLESS) == (self.counter is not None)
        assert self.reason == HARMLESS or self.reason in REASONS


def _rule(pattern: str, reason: str, advice: str | None = None, **more: object) -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE), reason, advice, **more)  # type: ignore[arg-type]


# -- lines that look bad and are not -------------------------------------------------------

HARMLESS_LINES: tuple[Rule, ...] = (
    _rule(
        r"(autotun|tactic).*(fail|skip)",
        HARMLESS,
        needles=("actic", "utotun"),
        counter="autotune_skipped",
    ),
    _rule(
        r"Ignore import error when loading",
        HARMLESS,
        needles=("Ignore import error",),
        counter="import_ignored",
    ),
    _rule(
        r"^Failed to (load plugin|execute general plugin|apply hooks to) ",
        HARMLESS,
        needles=("Failed to ",),
        counter="plugin_failed",
    ),
    _rule(
        r"^Exception in ASGI application",
        HARMLESS,
        needles=("Exception in ASGI",),
        counter="request_errors",
    ),
)

# -- lines that name an exception: `torch.OutOfMemoryError: CUDA out of memory ...` -------------

_NO_MEMORY = (
    r"OutOfMemoryError|CUDA out of memory|HIP out of memory|CUDA error: out of memory|"
    r"DefaultCPUAllocator: can't allocate|\bMemoryError\b|std::bad_alloc"
)
_ARCH = (
    r"(\bsm_?\d{2,3}\w?\b|compute capab|this (gpu|device|platform|hardware)|(gpu|cuda) arch|"
    r"\bcapability \d)"
)
MORE_ROOM = "raise mem_fraction_static; if it is high already: more GPUs or a shorter context"
LESS_ROOM = "lower mem_fraction_static, max_running_requests or cuda_graph_max_bs"
SMALLER_WEIGHTS = "more GPUs (tp_size), a quantised or a smaller model"
POOL_TOO_LARGE = (
    "the KV pool is larger than what is free: lower mem_fraction_static or max_total_tokens"
)
FULL_POOL = "the KV pool is full: less concurrency, lower max_running_requests"
OTHER_KERNEL = "choose another attention, MoE or GEMM back end, or an engine built for this GPU"
BAD_KERNEL = (
    "CUDA_LAUNCH_BLOCKING=1 names the kernel; then try another back end, without CUDA graphs"
)
HELD_PORT = "a process of an earlier run holds an internal port of the engine: end it by its pid"
TAKEN_PORT = "end the process that listens on the port, or let the port be chosen: port: auto"
NCCL = "read the first NCCL line; NCCL_DEBUG=INFO tells more; then try NCCL_P2P_DISABLE=1"
KILLED = "killed from outside if the code is -9: often the kernel, for want of host memory (dmesg)"

EXCEPTIONS: tuple[Rule, ...] = (
    _rule(
        r"No space left on device|Disk quota exceeded",
        "interrupted",
        "make room on the disk that the line names, or in /dev/shm",
    ),
    _rule(
        r"OutOfResources|out of resource: ",
        "kernel_unsupported",
        "the kernel wants more shared memory than this GPU has; choose another back end",
    ),
    _rule(
        r"Not enough (GPU )?memory.*mem.fraction|Not enough GPU memory for hybrid|"
        r"No available memory for the cache|leaves? no (GPU memory|room) for the.*KV|"
        r"state cache is too small|KV cache.*(larger|exceed)|(larger|more) than.*in KV cache",
        "oom_kv_init",
        MORE_ROOM,
    ),
    _rule(rf"Capture .*graph failed.*({_NO_MEMORY})", "oom_runtime", LESS_ROOM),
    _rule(r"(Prefill|Decode) out of memory\. Try|runs out of memory", "oom_runtime", FULL_POOL),
    _rule(_NO_MEMORY, "oom_weights", SMALLER_WEIGHTS, phase="weights"),
    _rule(_NO_MEMORY, "oom_kv_init", POOL_TOO_LARGE, phase="kv"),
    _rule(_NO_MEMORY, "oom_runtime", LESS_ROOM, phase="runtime"),
    _rule(
        r"no kernel image|invalid device function|unsupported toolchain|"
        r"\[TensorRT-LLM\].*Assertion failed|Failed to initialize cutlass|"
        r"cutlass (cannot|failed|error)|Assertion error \(.*(arch|\bsm_?\d)|"
        r"too many resources requested for launch|"
        rf"(not|un)[- ]?support.{{0,80}}{_ARCH}|{_ARCH}.{{0,80}}(not |un)support|"
        rf"requires? .{{0,40}}{_ARCH}|only .{{0,20}}support.{{0,40}}{_ARCH}",
        "kernel_unsupported",
        OTHER_KERNEL,
    ),
    _rule(
        r"NCCL error|ncclSystemError|ncclUnhandled|ncclInternalError|ncclRemoteError|"
        r"ncclInvalid|NCCL.*(timed? ?out)",
        "nccl_error",
        NCCL,
    ),
    _rule(
        r"\b(\w+_port|port_base)\b.*(not available|is used|in use)|ZMQError: Address already|"
        r"EADDRINUSE|failed to listen|Address already in use \(addr=",
        "leftover_process",
        HELD_PORT,
    ),
    _rule(
        r"address already in use|port \d+ .*(is|already) (in use|used)",
        "port_in_use",
        TAKEN_PORT,
    ),
    _rule(
        r"scheduler died during init|Initialization failed\. Please see the error messages above|"
        r"Engine core initialization failed|EngineDeadError|SchedulerDied|WorkerDied",
        "server_crash",
        KILLED,
        tier=CONSEQUENCE,
    ),
    _rule(
        r"^(EOFError|BrokenPipeError|ConnectionResetError|ConnectionRefusedError|"
        r"ConnectionAbortedError|asyncio\S*CancelledError|CancelledError)\b|"
        r"Connection (closed|reset) by peer",
        "server_crash",
        "the other end was gone: read what the other processes said before",
        tier=ECHO,
    ),
    _rule(
        r"^ModuleNotFoundError|^ImportError",
        "server_crash",
        "the engine lacks a package that this setting needs: install it into the engine",
    ),
    _rule(
        r"LocalEntryNotFoundError|OfflineModeIsEnabled|RepositoryNotFoundError|"
        r"is not a local folder|GatedRepoError",
        "server_crash",
        "the model is not on this node: check model.path, or download it first",
    ),
    _rule(
        r"divisible|\btp_size\b|\btensor.parallel",
        "server_crash",
        "the model's shape and the parallel sizes do not fit: choose another tp, ep or dp size",
    ),
    _rule(
        r"ForwardMetadata|attn_backend|attention.?backend",
        "server_crash",
        "a fault of the attention back end: choose another attention_backend or engine version",
    ),
    _rule(
        r"illegal memory access|device-side assert|unspecified launch failure|"
        r"misaligned address|index out of range in self",
        "server_crash",
        BAD_KERNEL,
    ),
)

# -- other lines that end a server ---------------------------------------------------------------

_ARGPARSE = (
    r"^(?:(?:\S*\.py|sglang|vllm)(?: [\w-]+)*: error: \S|[\w.-]+(?: [\w-]+)*: error: "
    r"(?:unrecognized arguments|argument |the following arg|ambiguous option))"
)

FATAL_LINES: tuple[Rule, ...] = (
    _rule(
        r"^sglang-oea: refused:",
        "plugin_inactive",
        "what the line says behind `fix:`",
        needles=("sglang-oea: refused:",),
    ),
    _rule(
        _ARGPARSE,
        "config_rejected",
        "correct or leave out the flag that is named; the engine's version may not know it",
        needles=("rror: ",),
    ),
    _rule(
        r"^(Prefill|Decode) out of memory\. Try",
        "oom_runtime",
        FULL_POOL,
        needles=("out of memory. Try",),
    ),
    _rule(
        r"NCCL WARN Cuda failure.*out of memory",
        "oom_runtime",
        "another process or the weights leave NCCL no room: lower mem_fraction_static",
        needles=("NCCL WARN",),
    ),
    _rule(
        r"NCCL WARN .*(fail|error)",
        "nccl_error",
        NCCL,
        needles=("NCCL WARN",),
    ),
    _rule(
        r"^nccl(SystemError|Unhandled|InternalError|RemoteError|Invalid)",
        "nccl_error",
        NCCL,
        needles=("nccl",),
    ),
    _rule(
        r"Watchdog caught collective operation timeout",
        "nccl_error",
        "a rank did not come to a collective: read what that rank said last",
        needles=("Watchdog caught",),
    ),
    _rule(
        r"^\[Errno 98\].*bind on address|^error while attempting to bind on address",
        "port_in_use",
        TAKEN_PORT,
        needles=("bind on address",),
    ),
    # of a thread on the device: an index or a NaN; of a compiler: a shape that it does not know
    _rule(
        r"thread: \[.*Assertion [`'].* failed",
        "server_crash",
        BAD_KERNEL,
        needles=("Assertion ",),
    ),
    _rule(
        r"^(\S+: )?\S+:\d+: .*Assertion [`'].* failed",
        "kernel_unsupported",
        OTHER_KERNEL,
        needles=("Assertion ",),
    ),
    _rule(r"^ptxas fatal", "kernel_unsupported", OTHER_KERNEL, needles=("ptxas fatal",)),
    _rule(
        rf"^terminate called after.*({_NO_MEMORY})",
        "oom_runtime",
        LESS_ROOM,
        needles=("terminate called",),
    ),
    _rule(
        r"^terminate called after|^Fatal Python error|^Segmentation fault|"
        r"^!*\s*Segfault encountered|^Bus error|^Illegal instruction|^Aborted \(core",
        "server_crash",
        "native code died: try another back end or without CUDA graphs; py-spy or gdb tell more",
        needles=(
            "terminate called",
            "Fatal Python error",
            "Segmentation fault",
            "Segfault encountered",
            "Bus error",
            "Illegal instruction",
            "Aborted (core",
        ),
    ),
    _rule(
        r"^(?:\w+ )?watchdog timeout \((?!.*self\.soft=True)",
        "server_crash",
        "a batch took longer than watchdog_timeout: a hang, or raise watchdog_timeout",
        needles=("atchdog timeout (",),
    ),
)

# -- lines that prove that a part of the engine is dead, whatever its front end answers ----------

DEATHS: tuple[Rule, ...] = tuple(
    _rule(pattern, "server_crash", KILLED, needles=(needle,), tier=CONSEQUENCE)
    for needle, pattern in (
        # of a scheduler, a detokenizer, a tokenizer manager, a controller of data parallel ranks
        ("hit an exception", r"^\w+(?: \w+)? hit an exception\b"),
        ("Subprocess ", r"^Subprocess .*\b(crashed|died|exited|terminated)\b(?!.* code 0\b)"),
        # not to the end of the sentence: older versions misspell it
        ("eceived sigquit", r"^Received sigquit from a child\b"),
        ("SIGQUIT received", r"^SIGQUIT received\b"),
        ("atchdog timeout (", r"^(?:\w+ )?watchdog timeout \((?!.*self\.soft=True)"),
        ("scheduler died", r"^(\w+: )?Rank \d+ scheduler died\b"),
        ("terminated with", r"^Scheduler or DataParallelController \d+ terminated with -?[1-9]"),
        ("SchedulerDied", r"^(\w+: )?([\w.]+\.)?SchedulerDied\w*\b"),
        ("child process", r"^(\w+: )?(The |A )?child process\b.{0,80}\b(failed|died|crashed)\b"),
        ("taking the entire process down", r"taking the entire process down"),
        ("EngineCore", r"^EngineCore (failed to start|encountered a fatal error|died)"),
        ("Engine core", r"^(\w+: )?Engine core (initialization failed|proc\b.* died)"),
        ("died unexpectedly", r"^Worker proc \S+ died unexpectedly"),
        ("EngineDeadError", r"^([\w.]+\.)?EngineDeadError\b"),
        ("terminate called after", r"^terminate called after"),
        ("Fatal Python error", r"^Fatal Python error: "),
        ("Segfault encountered", r"^!*\s*Segfault encountered"),
    )
)

# -- how far a rank has come ---------------------------------------------------------------------

MILESTONES: tuple[tuple[str, Phase], ...] = (
    ("Load weight begin", "weights"),
    ("Load weight end", "kv"),
    ("KV Cache is allocated", "runtime"),
    ("Memory pool end", "runtime"),
)
"""Text of a log line -> the phase that begins with it."""

FRAME = re.compile(
    r", in (?:"
    r"(?P<weights>load_model|load_weights\w*|_initialize_model|create_weights|"
    r"process_weights_after_loading)|"
    r"(?P<kv>init_memory_pool|alloc_memory_pool|_create_buffers\w*|init_kv_buffer|"
    r"initialize_kv_cache\w*)|"
    r"(?P<runtime>capture\w*|init_\w*graphs?|forward\w*|event_loop\w*|run_event_loop))$"
)
"""A frame of a traceback tells the phase better than any milestone; the innermost one wins."""

READY = "The server is fired up and ready to roll"
SERVING = ("Prefill batch", "Decode batch")
"""Lines that a scheduler prints only when it lives."""
