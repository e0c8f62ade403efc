"""Life of the stand-in server: load, open the port, become ready, serve, stop; log and truth log.

Log lines have the real server's form (sglang 0.5.23), because triage of the log is under test.
The truth log (`--standin-events`) has one JSON object a line: event, t (time.time()) and fields.
Events    start open ready request first finished flush sigterm escaped die stop
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from sglang import __version__, standin_faults, standin_flags
from sglang.standin_api import Api, dumps
from sglang.standin_engine import Engine, Request
from sglang.standin_experts import Recorder
from sglang.standin_http import PHRASES, Connection, HttpServer, Loop

DEFAULT_CONTEXT_LENGTH = 32768
DESCRIPTORS = 65535
DEPRECATED_ENTRY = (
    "<frozen runpy>:88: UserWarning: 'python -m sglang.launch_server' is still supported, but "
    "'sglang serve' is the recommended entrypoint.\n"
    "  Example: sglang serve --model-path <model> [options]"
)


def process_start() -> float:
    """Return when this process began, on the monotonic clock (the kernel keeps 10 ms steps)."""
    with open("/proc/self/stat", encoding="ascii") as file:  # noqa: PTH123 - importing pathlib takes 6 ms
        ticks = int(file.read().rpartition(")")[2].split()[19])
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.monotonic() - age_s


def fork_child(name: str, body: Callable[[], None]) -> int:
    """Fork a child that runs `body` and exits without any of our clean-up."""
    pid = os.fork()
    if pid == 0:
        with open("/proc/self/comm", "w", encoding="ascii") as comm:  # noqa: PTH123
            comm.write(name)
        body()
        os._exit(0)
    return pid


class Server:
    """Everything that has a life longer than one request."""

    def __init__(self, argv: list[str]) -> None:
        self.begin = process_start()
        self.started = time.time()
        self.args, self.settings, parser = standin_flags.parse(argv)
        try:
            asked = [standin_faults.Fault(text) for text in self.settings.fault]
            self.faults = {fault.name: fault for fault in asked if fault.applies(self.args)}
        except (KeyError, ValueError) as error:
            parser.error(f"argument --standin-fault: {error}")
        self.events = -1
        if self.settings.events:
            mode = os.O_CREAT | os.O_APPEND | os.O_WRONLY
            self.events = os.open(self.settings.events, mode, 0o644)
        self.log_level = {"debug": 10, "info": 20, "warning": 30, "error": 40}[
            self.args["log_level"].lower()
        ]
        self.log_access = (self.args["log_level_http"] or self.args["log_level"]).lower() in (
            "debug",
            "info",
        )
        self.context_length = self.args["context_length"] or DEFAULT_CONTEXT_LENGTH
        self.state = "loading"  # starting (port open), up, stopping
        self.may_open = self.may_become_ready = True
        self.ignores_sigterm = False
        self.hold_generate_s = 0.0
        self.on_loaded: list[Callable[[], None]] = []
        self.on_open: list[Callable[[], None]] = []
        self.fork_scheduler()

        recorded = self.args["expert_distribution_recorder_mode"] is not None
        self.recorder = Recorder(self.args["tp_size"]) if recorded else None
        self.profiler: Any = None  # made when it is asked for
        self.engine = Engine(self)
        if "multi_token_chunks" in self.faults:
            self.engine.chunk_tokens = int(self.faults["multi_token_chunks"].arg)
        self.api = Api(self)
        self.loop = Loop()
        self.http = HttpServer(self.loop, self.api.handle, self.access)
        self.request_faults = [
            self.bind_fault(act, self.faults[name])
            for name, act in standin_faults.ON_REQUEST.items()
            if name in self.faults
        ]

    def bind_fault(
        self, act: Callable[..., bool], fault: Any
    ) -> Callable[["Server", Request], bool]:
        return lambda server, request: act(server, request, fault)

    # --- life ---------------------------------------------------------------------------------

    def run(self) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        enough = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))
        self.loop.on_signals({signal.SIGTERM: self.sigterm, signal.SIGINT: self.sigterm})
        self.event("start", pid=os.getpid(), scheduler_pid=self.scheduler, args=self.args)
        self.raw(DEPRECATED_ENTRY)
        self.log(f"server_args={self.args}")
        if says := os.environ.get("STANDIN_SAYS"):
            self.log(says)
        self.log("Init parallel begin.", rank=True)
        for name, act in standin_faults.AT_START.items():
            if name in self.faults:
                act(self, self.faults[name])
        if self.may_open:
            self.log("Load weight begin. avail mem=94.10 GB", rank=True)
        self.loop.at(self.begin + self.settings.open_ms / 1e3, self.open)
        with contextlib.suppress(ImportError):  # where the stand-in of the plug-in is installed
            importlib.import_module("sglang_oea.answer").begin(self)
        self.loop.after(self.settings.life_s, lambda: self.exit(0, "life"))
        self.loop.run()

    def halfway(self, callback: Callable[[], None]) -> None:
        self.loop.at(self.begin + self.settings.open_ms / 2e3, callback)

    def open(self) -> None:
        if not self.may_open or self.state == "stopping":
            return
        capacity = self.engine.capacity
        self.log(
            "Load weight end. type=StandIn, avail mem=34.20 GB, mem usage=59.50 GB.", rank=True
        )
        self.log(
            f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {capacity}, "
            "K size: 10.95 GB, V size: 10.95 GB",
            rank=True,
        )
        self.log(
            f"max_total_num_tokens={capacity}, "
            f"chunked_prefill_size={self.args['chunked_prefill_size']}, "
            f"max_running_requests={self.engine.slots}, context_len={self.context_length}",
            rank=True,
        )
        for callback in self.on_loaded:
            callback()
        host, port = self.args["host"], self.args["port"]
        try:
            self.http.open(host, port)
        except OSError as error:
            reason = os.strerror(error.errno or 0).lower()
            self.log(
                f"ERROR:    [Errno {error.errno}] error while attempting to bind on address "
                f"({host!r}, {port}): {reason}",
                level=40,
            )
            self.exit(1, "port")
        for callback in self.on_open:
            callback()
        self.state = "starting"
        self.log(f"INFO:     Started server process [{os.getpid()}]")
        self.log("INFO:     Application startup complete.")
        self.log(f"INFO:     Uvicorn running on http://{host}:{port} (Press CTRL+C to quit)")
        self.event("open")
        if self.may_become_ready:
            ready_ms = (
                self.settings.open_ms if self.args["skip_server_warmup"] else self.settings.ready_ms
            )
            self.loop.at(self.begin + ready_ms / 1e3, self.become_ready)

    def become_ready(self) -> None:
        if self.state != "starting":
            return
        self.state = "up"
        self.engine.hold_until = time.monotonic() + self.hold_generate_s
        if not self.args["skip_server_warmup"] and self.log_access:
            self.log(f'INFO:     {self.args["host"]}:60286 - "POST /generate HTTP/1.1" 200 OK')
        self.log("The server is fired up and ready to roll!")
        self.event("ready", since_process_start_s=round(time.monotonic() - self.begin, 4))

    def takes_requests(self) -> bool:
        return self.state == "up" or (self.state == "starting" and not self.may_become_ready)

    def sigterm(self) -> None:
        self.event("sigterm")
        if self.ignores_sigterm:
            return
        self.log("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
        self.state = "stopping"
        self.loop.after(self.settings.stop_ms / 1e3, self.stop)

    def stop(self) -> None:
        if "drain_forever" in self.faults and not self.engine.idle:
            n = len(self.engine.running)
            self.log(f"Gracefully exiting... Remaining number of requests {n}.")
            self.loop.after(0.1, self.stop)
            return
        self.log(f"INFO:     Finished server process [{os.getpid()}]")
        self.exit(0, "sigterm")

    def exit(self, code: int, reason: str) -> None:
        engine = self.engine
        self.event(
            "stop",
            reason=reason,
            code=code,
            requests=self.api.requests,
            ticks=engine.ticks,
            late_ticks=engine.late_ticks,
        )
        self.kill_scheduler()
        os._exit(code)

    def die(self, death: str, message: str = "") -> None:
        """End as a crash does: at once, by exit code or by signal."""
        if message:
            self.raw(message)
        self.event("die", death=death)
        self.kill_scheduler()
        if death.startswith("SIG"):
            if death not in ("SIGKILL", "SIGSTOP"):
                signal.signal(signal.Signals[death], signal.SIG_DFL)
            os.kill(os.getpid(), signal.Signals[death])
            signal.pause()
        os._exit(int(death))

    # --- processes ----------------------------------------------------------------------------

    def fork_scheduler(self) -> None:
        """A child that lives as long as we do, as the real server has for each rank."""
        read_end, self.scheduler_pipe = os.pipe()

        def body() -> None:
            os.close(self.scheduler_pipe)
            os.read(read_end, 1)

        self.scheduler = fork_child("sglang::schedul", body)
        os.close(read_end)

    def kill_scheduler(self) -> None:
        if self.scheduler:
            os.kill(self.scheduler, signal.SIGKILL)
            os.waitpid(self.scheduler, 0)
            self.scheduler = 0

    def fork_escaped(self, seconds: float) -> None:
        def body() -> None:
            os.close(self.scheduler_pipe)
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(seconds)

        self.event("escaped", pid=fork_child("sglang::detoken", body))

    # --- what it says -------------------------------------------------------------------------

    def raw(self, text: str | bytes, end: str = "\n") -> None:
        data = text if isinstance(text, bytes) else text.encode()
        os.write(2, data + end.encode())

    def log(self, text: str, *, level: int = 20, rank: bool = False) -> None:
        if level >= self.log_level:
            prefix = " TP0" if rank and self.args["tp_size"] > 1 else ""
            self.raw(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}{prefix}] {text}")

    def access(self, connection: Connection, status: int) -> None:
        if self.log_access:
            line = f'{connection.client} - "{connection.request_line}" {status} {PHRASES[status]}'
            self.log(f"INFO:     {line}")

    def kv_tokens(self) -> int:
        return sum(request.prompt_tokens + request.produced for request in self.engine.running)

    def graph(self) -> str:
        label = "cpu graph" if self.args["device"] == "cpu" else "cuda graph"
        return f"{label}: {not self.args['disable_cuda_graph']}"

    def log_prefill(self, requests: list[Request]) -> None:
        engine = self.engine
        cached = sum(request.cached for request in requests)
        new = sum(request.prompt_tokens for request in requests) - cached
        self.log(
            f"Prefill batch, #new-seq: {len(requests)}, "
            f"#new-token: {new}, #cached-token: {cached}, "
            f"token usage: {self.kv_tokens() / engine.capacity:.2f}, "
            f"#running-req: {len(engine.running) - len(requests)}, "
            f"#queue-req: {len(engine.waiting)}, #pending-token: 0, {self.graph()}, "
            f"input throughput (token/s): {new / max(engine.ttft_s, 1e-3):.2f}",
            rank=True,
        )

    def log_decode(self) -> None:
        engine, tokens = self.engine, self.kv_tokens()
        self.log(
            f"Decode batch, #running-req: {len(engine.running)}, #token: {tokens}, "
            f"token usage: {tokens / engine.capacity:.2f}, {self.graph()}, "
            f"gen throughput (token/s): {engine.gen_throughput:.2f}, "
            f"#queue-req: {len(engine.waiting)}",
            rank=True,
        )

    def info(self) -> dict[str, Any]:
        """Body of /server_info, changed by the faults that lie."""
        state = {
            **self.args,
            "effective_max_running_requests_per_dp": self.engine.slots,
            "last_gen_throughput": self.engine.gen_throughput,
            "memory_usage": {
                "weight": 59.5,
                "kvcache": 21.9,
                "token_capacity": self.engine.capacity,
            },
        }
        info = {
            **self.args,
            "status": "ready",
            "max_total_num_tokens": self.engine.capacity,
            "max_req_input_len": self.context_length - 6,
            "startup_time": {
                "load_weight": 0.01,
                "kv_cache_allocation": 0.01,
                "scheduler_e2e": 0.03,
            },
            "internal_states": [state] * self.args["dp_size"],
            "version": __version__,
            "frontend": "python",
        }
        if wrong := self.faults.get("wrong_model"):
            info["model_path"] = info["served_model_name"] = wrong.arg
        if wrong := self.faults.get("wrong_version"):
            info["version"] = wrong.arg
        if wrong := self.faults.get("wrong_flag"):
            name, _, value = wrong.arg.partition("=")
            try:
                info[name] = json.loads(value)
            except ValueError:
                info[name] = value
        return info

    def refuse(self, request: Request, status: int, outcome: str) -> bool:
        error = {"error": {"message": f"stand-in: {outcome}", "code": status}}
        self.event_finished(request, outcome)
        request.connection.respond(status, dumps(error))
        return True

    # --- truth log ----------------------------------------------------------------------------

    def event(self, name: str, **fields: Any) -> None:
        if self.events >= 0:
            line = {"event": name, "t": time.time(), **fields}
            os.write(self.events, dumps(line) + b"\n")

    def event_first(self, request: Request) -> None:
        self.event(
            "first",
            n=request.number,
            cached_tokens=request.cached,
            cold=request.slowness > 1,
            running=len(self.engine.running),
        )

    def event_finished(self, request: Request, outcome: str) -> None:
        """Tokens are those produced; with outcome `ok` or `short` all of them were sent."""
        self.event("finished", n=request.number, tokens=request.produced, outcome=outcome)


def main() -> None:
    Server(sys.argv[1:]).run()
