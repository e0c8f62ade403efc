"""Faults of the stand-in: `--standin-fault NAME[:ARG][@N][?FLAG=VALUE]`, repeatable.

@N             from the N-th generate request on (readiness probe and warm-up count too); for faults
               with a SHARE and `short_output`.
?FLAG=VALUE    only when that server flag has that value: one command line for a whole campaign,
               one cell of which fails, e.g. `oom_kv?mem_fraction_static=0.95`.
?once=FILE     only if FILE does not exist yet; creates it. So the next launch is healthy.
SHARE          0.25 hits every fourth request, 1 every request; no chance is involved.
DEATH          an exit code (`3`) or a signal (`SIGKILL`, as the real server kills its own tree when
               a scheduler fails).

Behaviours SB01 … SB20 are those of the case collection; SB01 is the default start, SB05 is any
unknown flag, SB08 `--standin-cold-factor`, SB17 the prefix cache, on by default.
"""

import math
import os
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sglang.standin_engine import Request
    from sglang.standin_server import Server

TORCH_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {size} GiB. GPU 0 has a total "
    "capacity of 94.97 GiB of which {free} GiB is free. Process {pid} has {used} GiB memory in use."
)
TRACEBACK = """Scheduler hit an exception: Traceback (most recent call last):
  File "sglang/srt/managers/scheduler.py", line 6360, in run_scheduler_process
    {frame}
{error}
"""
LOST_ATTRIBUTE = (
    "AttributeError: 'ForwardMetadata' object has no attribute 'page_table_1_flattened'"
)
TACTIC = (
    "[Autotuner]: Skipping tactic <MoERunner> {i}, due to failure while profiling: "
    "[TensorRT-LLM][ERROR] Assertion failed: Failed to initialize cutlass TMA WS grouped gemm. "
    "Error: Error Internal"
)


class Fault:
    """One fault as asked for on the command line."""

    def __init__(self, text: str) -> None:
        spec, _, self.condition = text.partition("?")
        spec, _, first = spec.partition("@")
        self.name, _, self.arg = spec.partition(":")
        self.first = int(first or 1)
        self.requests = 0
        if self.name not in CATALOGUE:
            raise ValueError(f"unknown fault {self.name!r}, known: {', '.join(sorted(CATALOGUE))}")
        default, meaning = CATALOGUE[self.name]
        if not self.arg and default is None:
            raise ValueError(f"fault {self.name!r} needs an argument: {meaning}")
        self.arg = self.arg or default or ""

    def applies(self, args: dict[str, Any]) -> bool:
        flag, _, value = self.condition.partition("=")
        if not flag:
            return True
        if flag == "once":
            try:
                os.close(os.open(value, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return False
            return True
        actual = args[flag]
        if isinstance(actual, (int, float)) and not isinstance(actual, bool):
            return float(value) == actual
        return value == str(actual)

    def hits(self, number: int) -> bool:
        """Whether a fault with a SHARE hits this request; spread evenly, not by chance."""
        if number < self.first:
            return False
        self.requests += 1
        share = float(self.arg)
        return math.floor(self.requests * share) > math.floor((self.requests - 1) * share)


# --- At start: called once, before the port opens -----------------------------------------------


def die_before_ready(server: "Server", fault: Fault) -> None:
    server.halfway(lambda: crash(server, fault, "RuntimeError: stand-in dies before it is ready"))


def oom_weights(server: "Server", fault: Fault) -> None:
    error = TORCH_OOM.format(size="2.25", free="1.11", used="93.85", pid=os.getpid())
    server.halfway(lambda: crash(server, fault, error, "self.load_model()"))


def oom_kv(server: "Server", fault: Fault) -> None:
    error = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."
    server.halfway(lambda: crash(server, fault, error, "self.init_memory_pool()"))


def nccl_error(server: "Server", fault: Fault) -> None:
    error = "torch.distributed.DistBackendError: NCCL error: unhandled system error, NCCL 2.28.3"
    server.halfway(lambda: crash(server, fault, error, "initialize_model_parallel()"))


def kernel_unsupported(server: "Server", fault: Fault) -> None:
    error = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    server.halfway(lambda: crash(server, fault, error, "self.forward_decode(forward_batch)"))


def internal_port_in_use(server: "Server", fault: Fault) -> None:
    port = server.args["port"] + 233
    error = f"RuntimeError: rpc_port {port} is used by a process already (pid 1, sglang::scheduler)"
    server.halfway(lambda: server.die(fault.arg, error))


def never_opens_port(server: "Server", fault: Fault) -> None:
    server.raw(f"node:{os.getpid()}:{os.getpid()} [0] NCCL INFO Bootstrap : Using lo:127.0.0.1<0>")
    server.may_open = False


def never_ready(server: "Server", fault: Fault) -> None:
    server.may_become_ready = False


def autotune_noise(server: "Server", fault: Fault) -> None:
    def lines() -> None:
        for i in range(int(fault.arg)):
            server.log(TACTIC.format(i=i), rank=True)

    server.on_loaded.append(lines)


def odd_log(server: "Server", fault: Fault) -> None:
    for share in range(0, 101, 25):
        server.raw(f"\rLoading safetensors checkpoint shards: {share:3}% Completed", end="")
    server.raw("")
    server.raw(b"\x1b[31mWARN\x1b[0m na\xefve byte")


def health_before_generate(server: "Server", fault: Fault) -> None:
    server.hold_generate_s = float(fault.arg)


def ignore_sigterm(server: "Server", fault: Fault) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server.ignores_sigterm = True


def escaped_child(server: "Server", fault: Fault) -> None:
    server.on_open.append(lambda: server.fork_escaped(float(fault.arg)))


def crash(server: "Server", fault: Fault, error: str, frame: str = "scheduler.run()") -> None:
    server.log(TRACEBACK.format(error=error, frame=frame), rank=True, level=40)
    if server.state == "loading":
        server.log("Received sigquit from a child process. It usually means the child failed.")
    else:  # the real server then sleeps 5 s before it kills its own tree
        server.log("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
    server.die(fault.arg)


# --- On each generate request: may answer it (then return True) or change its end ----------------


def die_after(server: "Server", request: "Request", fault: Fault) -> bool:
    count, _, death = fault.arg.partition(":")
    if request.number <= int(count):
        return False
    fault.arg = death or "SIGKILL"
    crash(server, fault, LOST_ATTRIBUTE, "self.attn_backend.forward_extend(q, k, v, layer)")
    return True


def oom_runtime(server: "Server", request: "Request", fault: Fault) -> bool:
    if request.number <= int(fault.arg):
        return False
    fault.arg = "SIGKILL"
    error = TORCH_OOM.format(size="3.50", free="0.42", used="94.54", pid=os.getpid())
    crash(server, fault, error, "self.forward_extend(forward_batch)")
    return True


def scheduler_dies_after(server: "Server", request: "Request", fault: Fault) -> bool:
    if request.number <= int(fault.arg):
        return False
    if not server.engine.dead:
        traceback = TRACEBACK.format(error=LOST_ATTRIBUTE, frame="self.run_batch(batch)")
        server.log(traceback, rank=True, level=40)
        server.kill_scheduler()
        server.engine.die()
    server.event_finished(request, "dropped")
    request.connection.close()
    return True


def http_500(server: "Server", request: "Request", fault: Fault) -> bool:
    return fault.hits(request.number) and server.refuse(request, 500, "http_500")


def http_503(server: "Server", request: "Request", fault: Fault) -> bool:
    early = fault.arg == "all" or request.number <= int(fault.arg)
    return early and server.refuse(request, 503, "http_503")


def http_404(server: "Server", request: "Request", fault: Fault) -> bool:
    early = fault.arg == "all" or request.number <= int(fault.arg)
    return early and server.refuse(request, 404, "http_404")


def error_body(server: "Server", request: "Request", fault: Fault) -> bool:
    return fault.hits(request.number) and server.refuse(request, 200, "error_body")


def sse_error(server: "Server", request: "Request", fault: Fault) -> bool:
    if fault.hits(request.number):
        request.length, request.ending = min(2, request.length), "sse_error"
    return False


def truncate(server: "Server", request: "Request", fault: Fault) -> bool:
    if fault.hits(request.number):
        request.length, request.ending = (request.length + 1) // 2, "truncated"
    return False


def hang_stream(server: "Server", request: "Request", fault: Fault) -> bool:
    if request.number == int(fault.arg):
        request.length, request.ending = 1, "hung"
    return False


def short_output(server: "Server", request: "Request", fault: Fault) -> bool:
    if request.number >= fault.first and int(fault.arg) < request.length:
        request.length, request.ending = int(fault.arg), "short"
    return False


# --- On every route: looked up by name where they act --------------------------------------------

AT_START = {
    f.__name__: f
    for f in (
        die_before_ready,
        oom_weights,
        oom_kv,
        nccl_error,
        kernel_unsupported,
        internal_port_in_use,
        never_opens_port,
        never_ready,
        autotune_noise,
        odd_log,
        health_before_generate,
        ignore_sigterm,
        escaped_child,
    )
}
ON_REQUEST = {
    f.__name__: f
    for f in (
        die_after,
        oom_runtime,
        scheduler_dies_after,
        http_500,
        http_503,
        http_404,
        error_body,
        sse_error,
        truncate,
        hang_stream,
        short_output,
    )
}

# name: (default argument, or None when one must be given; what it does)
CATALOGUE: dict[str, tuple[str | None, str]] = {
    "die_before_ready": ("1", "DEATH: dies with a traceback while loading"),
    "oom_weights": ("SIGKILL", "DEATH: torch.OutOfMemoryError while loading weights"),
    "oom_kv": ("SIGKILL", "DEATH: not enough memory for the KV pool"),
    "nccl_error": ("SIGKILL", "DEATH: NCCL error in start-up"),
    "kernel_unsupported": ("SIGKILL", "DEATH: no kernel image for this device"),
    "internal_port_in_use": ("1", "DEATH: a derived port is held by an orphan (A13)"),
    "never_opens_port": ("", "logs stop after NCCL bootstrap, no port, for ever (SB06)"),
    "never_ready": ("", "/health stays 503, /generate works (A12)"),
    "autotune_noise": ("160", "COUNT harmless [ERROR] lines before the port opens (A08)"),
    "odd_log": ("", "progress bars, colour codes and a byte that is not UTF-8 in the log"),
    "health_before_generate": (None, "SECONDS from health 200 until a request is taken (SB02)"),
    "ignore_sigterm": ("", "SIGTERM does nothing (SB20)"),
    "drain_forever": ("", "SIGTERM waits until every stream has ended (SB20, variant)"),
    "escaped_child": ("120", "SECONDS that a setsid child outlives us, holding the port (SB19)"),
    "die_after": (None, "N[:DEATH]: dies at request N+1 with L05's traceback"),
    "oom_runtime": (None, "N: dies of torch.OutOfMemoryError at request N+1"),
    "scheduler_dies_after": (None, "N: the child exits; /health 200, generates dropped (SB03)"),
    "http_500": (None, "SHARE of generates answered 500"),
    "http_503": (None, "first N generates, or `all`, answered 503 (SB10)"),
    "http_404": (None, "first N generates, or `all`, answered 404 (SB10)"),
    "error_body": (None, "SHARE answered 200 with a body {error: …} (SB11, variant)"),
    "sse_error": (None, "SHARE: two deltas, then an error event and [DONE] (SB11)"),
    "truncate": (None, "SHARE: closed after half the tokens, no [DONE] (SB12)"),
    "hang_stream": (None, "request N: one delta, then nothing, socket open (SB15)"),
    "short_output": (None, "N tokens, finish reason stop, whatever was asked (SB14, SB18)"),
    "multi_token_chunks": (None, "K tokens in each event"),
    "odd_sse": ("", "no space after data:, pings, CRLF, cuts inside UTF-8 (SB13)"),
    "no_usage": ("", "usage null and no token counts in meta_info (SB14)"),
    "health_busy": ("8", "/health_generate answers 503 while N requests run (SB09)"),
    "wrong_model": ("somebody-elses-model", "NAME reported as model path and name (SB04)"),
    "wrong_flag": (None, "NAME=VALUE reported by /server_info"),
    "wrong_version": ("0.5.8", "VERSION reported by /server_info (E10)"),
    "flush_refused": ("", "/flush_cache answers 400"),
    "oea_silent": ("", "the last rank does not say that the plug-in runs"),
    "oea_uncalled": ("", "ranks say that the plug-in was never called"),
    "oea_other_k0": ("", "ranks run with another k0"),
    "oea_wrong_core": ("", "ranks found their core to be wrong"),
    "oea_stray": ("", "ranks answer although the plug-in is off"),
}
