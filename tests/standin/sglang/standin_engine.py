"""Lock-step scheduler of the stand-in: when each token of each request is sent.

Every tick, each running request whose first token is due gets one token, as in one decode step of
a batched server. So the truth is known by construction: TPOT is the tick, TTFT is `ttft` plus the
wait for a slot plus less than one tick, and the token count is what was asked.

Owns      queue, slots, KV tokens, prefix cache, cold phase, decode log line.
Not here  wire formats (`standin_api`), what goes wrong (`standin_faults`).
"""

import time
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sglang.standin_http import Connection
    from sglang.standin_server import Server


class Request:
    """One generation: `length` tokens, then its `ending` (see `standin_api.Form.end`)."""

    __slots__ = (
        "age",
        "cached",
        "connection",
        "due",
        "ending",
        "form",
        "hung",
        "key",
        "length",
        "max_new_tokens",
        "number",
        "produced",
        "prompt_tokens",
        "received",
        "rid",
        "sent",
        "slowness",
        "stream",
    )

    def __init__(self, number: int, connection: "Connection", form: Any, stream: bool) -> None:
        self.number = number  # 1, 2, … in order of arrival, over all generate routes
        self.rid = f"{number:032x}"
        self.connection = connection
        self.form = form
        self.stream = stream
        self.received = time.monotonic()
        self.key: Any = None
        self.prompt_tokens = 0
        self.cached = 0
        self.max_new_tokens = 0
        self.length = 0
        self.ending = "ok"
        self.produced = 0  # tokens
        self.sent = 0  # tokens that left in an event
        self.due = 0.0
        self.age = 0
        self.slowness = 1
        self.hung = False


class Engine:
    """Admits requests into slots and gives each running one a token per tick."""

    def __init__(self, server: "Server") -> None:
        args, settings = server.args, server.settings
        self.server = server
        self.slots = args["max_running_requests"] or 2048
        # Like the real server: the fraction sizes the pool, an explicit cap wins over it.
        self.capacity = args["max_total_tokens"] or int(args["mem_fraction_static"] * 1_000_000)
        self.ttft_s = settings.ttft_ms / 1e3
        self.hit_ttft_s = min(settings.hit_ttft_ms, settings.ttft_ms) / 1e3
        self.tick_s = settings.tpot_ms / 1e3
        self.tick_per_request_s = settings.tpot_per_req_ms / 1e3
        self.cold_factor = settings.cold_factor
        self.chunk_tokens = args["stream_interval"]
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.seen: set[Any] = set()
        self.dead = False
        self.hold_until = 0.0
        self.highest_running = 0
        self.cold_left = 0
        self.used_tokens = 0
        self.ticking = False  # a tick is planned
        self.decoding = False  # the last tick gave a token
        self.planned = 0
        self.next_tick = 0.0
        self.ticks = 0
        self.late_ticks = 0
        self.tokens_since_log = 0
        self.last_log = time.monotonic()
        self.gen_throughput = 0.0
        self.when_idle: list[Any] = []

    @property
    def idle(self) -> bool:
        return not (self.running or self.waiting)

    def submit(self, request: Request) -> None:
        request.connection.on_lost = lambda: self.remove(request, "client_gone")
        self.waiting.append(request)
        self.admit()

    def admit(self) -> None:
        now = time.monotonic()
        if now < self.hold_until:
            self.server.loop.at(self.hold_until, self.admit)
            return
        new: list[Request] = []
        while self.waiting and len(self.running) < self.slots:
            need = self.waiting[0].prompt_tokens + self.waiting[0].max_new_tokens
            if self.running and self.used_tokens + need > self.capacity:
                break
            request = self.waiting.popleft()
            self.used_tokens += need
            self.running.append(request)
            self.start(request, now)
            new.append(request)
        if new:
            self.server.log_prefill(new)
            if self.server.recorder is not None:
                uncached = sum(request.prompt_tokens - request.cached for request in new)
                self.server.recorder.step(uncached, decode=False)
            due = min(request.due for request in new)
            # No token is on its way yet: the tick is where the earliest first token is due.
            if not self.ticking or (not self.decoding and due < self.next_tick):
                self.tick_at(due)

    def start(self, request: Request, now: float) -> None:
        """Set when the first token is due: cache hit or not, cold or warm."""
        if len(self.running) > self.highest_running:
            self.highest_running = len(self.running)
            self.cold_left = self.server.settings.cold_requests if self.cold_factor > 1 else 0
        if self.cold_left:
            self.cold_left -= 1
            request.slowness = self.cold_factor
        if not self.server.args["disable_radix_cache"]:
            # The real cache also holds back at least one token to compute.
            request.cached = request.prompt_tokens - 1 if request.key in self.seen else 0
            self.seen.add(request.key)
        ttft_s = self.hit_ttft_s if request.cached else self.ttft_s
        request.due = now + ttft_s * request.slowness

    def tick_at(self, when: float) -> None:
        """Plan the next tick, in place of any planned before."""
        self.ticking = True
        self.next_tick = when
        self.planned += 1
        plan = self.planned
        self.server.loop.at(when, lambda: self.tick() if plan == self.planned else None)

    def tick(self) -> None:
        now = time.monotonic()
        active = 0
        for request in list(self.running):
            if request.due > now or request.hung:
                continue
            active += 1
            request.age += 1
            if (request.age - 1) % request.slowness == 0:
                self.token(request)
        self.ticks += 1
        if self.server.recorder is not None:
            self.server.recorder.step(active)
        if self.server.profiler is not None:
            self.server.profiler.step(active)
        if active and self.ticks % self.server.args["decode_log_interval"] == 0:
            self.gen_throughput = self.tokens_since_log / (now - self.last_log)
            self.tokens_since_log, self.last_log = 0, now
            self.server.log_decode()
        self.decoding = active > 0
        self.admit()
        self.schedule_tick(active)

    def schedule_tick(self, active: int) -> None:
        due = [request.due for request in self.running if not request.hung]
        if not due:
            self.ticking = self.decoding = False
            return
        if not active:
            self.tick_at(min(due))
            return
        next_tick = self.next_tick + self.tick_s + self.tick_per_request_s * active
        now = time.monotonic()
        if next_tick < now:  # this machine cannot keep the tick: no burst, but say so
            self.late_ticks += 1
        self.tick_at(max(next_tick, now))

    def token(self, request: Request) -> None:
        """Produce one token. The truth log is written first: whoever has the bytes can read it."""
        request.produced += 1
        self.tokens_since_log += 1
        if request.produced == 1:
            self.server.event_first(request)
        if request.produced == request.length:
            self.end(request)
        elif request.stream and (request.produced - 1) % self.chunk_tokens == 0:
            request.form.emit(request)

    def end(self, request: Request) -> None:
        if request.ending == "hung":
            request.hung = True  # keeps its slot and its socket, for ever
        else:
            self.remove(request, request.ending)
        request.form.end(request)

    def remove(self, request: Request, outcome: str) -> None:
        if request in self.running:
            self.running.remove(request)
            self.used_tokens -= request.prompt_tokens + request.max_new_tokens
        elif request in self.waiting:
            self.waiting.remove(request)
        else:
            return
        self.server.event_finished(request, outcome)
        if self.idle:
            callbacks, self.when_idle = self.when_idle, []
            for callback in callbacks:
                callback()

    def die(self) -> None:
        """The scheduler is gone: drop everything, and every later request."""
        self.dead = True
        for request in [*self.running, *self.waiting]:
            request.connection.on_lost = None
            request.connection.close()
            self.remove(request, "dropped")
