"""Routes and bodies of the stand-in, as SGLang 0.5.23 answers them.

Source    sglang 0.5.23, srt/entrypoints/http_server.py and srt/managers/tokenizer_manager.py.
Differs   the real `/health` runs a one-token generation and takes a second (`--standin-health-ms`),
          the real server waits 5 s between a scheduler's exception and its own end.
Not here  when a token is due (`standin_engine`), what goes wrong (`standin_faults`).
"""

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sglang import __version__
from sglang.standin_engine import Request

if TYPE_CHECKING:
    from sglang.standin_http import Connection
    from sglang.standin_server import Server

HEALTH_CHECK_TIMEOUT_S = 20
TOKEN_IDS = b",7"  # every token has this id, and is the word of `words`
SSE_DONE = b"data: [DONE]\n\n"


def dumps(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def loads(data: bytes) -> dict[str, Any]:
    value = json.loads(data)
    if not isinstance(value, dict):
        raise ValueError("The request body must be a JSON object.")  # noqa: TRY004 - bad as bad JSON
    return value


def words(start: int, end: int) -> bytes:
    """Text of tokens start+1 … end, as the detokenizer would give it."""
    return b" tok" * (end - start) if start else (b" tok" * end)[1:]


class Form:
    """Wire format of one route: how a request is read and its tokens are written."""

    def __init__(self, server: "Server", body: dict[str, Any]) -> None:
        self.server = server
        self.body = body
        self.odd = server.faults.get("odd_sse")
        self.no_usage = "no_usage" in server.faults
        self.created = int(time.time())

    def prompt(self) -> tuple[Any, int]:
        """Return (what identifies the prompt in the cache, its token count)."""
        prompt = self.body.get("prompt")
        if isinstance(prompt, str) and prompt:
            return prompt, len(prompt.split()) or 1
        if isinstance(prompt, list) and prompt and all(isinstance(t, int) for t in prompt):
            return tuple(prompt), len(prompt)
        raise ValueError("The stand-in takes one prompt: a text or a list of token ids.")

    def max_new_tokens(self) -> Any:
        return self.body.get("max_completion_tokens") or self.body.get("max_tokens")

    def chunk(self, request: Request, reason: str | None) -> bytes:
        raise NotImplementedError

    def whole(self, request: Request, reason: str) -> dict[str, Any]:
        raise NotImplementedError

    def usage(self, request: Request) -> dict[str, int] | None:
        if self.no_usage:
            return None
        return {
            "prompt_tokens": request.prompt_tokens,
            "completion_tokens": request.produced,
            "total_tokens": request.prompt_tokens + request.produced,
        }

    def send(self, request: Request, event: bytes) -> None:
        if self.odd is None:
            request.connection.send_chunk(event)
        else:
            send_oddly(request.connection, event)

    def emit(self, request: Request, reason: str | None = None) -> None:
        self.send(request, self.chunk(request, reason))
        request.sent = request.produced

    def last_events(self, request: Request) -> bytes:
        return SSE_DONE

    def end(self, request: Request) -> None:
        """Produce the last token and whatever `request.ending` says comes after it."""
        connection, ending = request.connection, request.ending
        reason = {"ok": "length", "short": "stop"}.get(ending)
        if request.stream:
            self.emit(request, reason)
        if ending == "truncated":
            connection.on_lost = None
            connection.close()
        elif ending == "sse_error":
            message = "stand-in: boom"
            self.server.log(f"[http_server] Error: {message}", level=40)
            error = {"error": {"message": message, "type": "internal_error", "code": 500}}
            if request.stream:
                self.send(request, b"data: " + dumps(error) + b"\n\n" + SSE_DONE)
                connection.end_stream()
            else:
                connection.respond(400, dumps(error))
        elif reason and request.stream:
            self.send(request, self.last_events(request))
            connection.end_stream()
        elif reason:
            connection.respond(200, dumps(self.whole(request, reason)))


class Native(Form):
    """`/generate`: cumulative text and ids, counts in meta_info."""

    def prompt(self) -> tuple[Any, int]:
        self.body["prompt"] = self.body.get("input_ids") or self.body.get("text")
        return super().prompt()

    def max_new_tokens(self) -> Any:
        return (self.body.get("sampling_params") or {}).get("max_new_tokens", 128)

    def chunk(self, request: Request, reason: str | None) -> bytes:
        n = request.produced
        finish, latency = b"null", b""
        if reason:
            finish = dumps(finish_reason(request, reason))
            latency = b',"e2e_latency":%.6f' % (time.monotonic() - request.received)
        counts = b""
        if not self.no_usage:
            counts = (
                b',"prompt_tokens":%d,"reasoning_tokens":0,"completion_tokens":%d,"cached_tokens":%d'
                % (request.prompt_tokens, n, request.cached)
            )
        return (
            b'data: {"text":"%b","output_ids":[%b],"meta_info":{"id":"%b","finish_reason":%b,'
            b'"weight_version":"default","num_retractions":0%b%b}}\n\n'
        ) % (words(0, n), (TOKEN_IDS * n)[1:], request.rid.encode(), finish, counts, latency)

    def whole(self, request: Request, reason: str) -> dict[str, Any]:
        return loads(self.chunk(request, reason)[6:])


class Completions(Form):
    """`/v1/completions`: one piece of text per event, usage at the end when asked for."""

    name = "text_completion"

    def chunk(self, request: Request, reason: str | None) -> bytes:
        text = words(request.sent, request.produced).decode()
        return self.event(request, [choice({"text": text}, reason)])

    def event(self, request: Request, choices: list[Any], usage: Any = None) -> bytes:
        payload = {
            "id": request.rid,
            "object": self.name,
            "created": self.created,
            "model": self.server.args["served_model_name"],
            "choices": choices,
            "usage": usage,
        }
        return b"data: " + dumps(payload) + b"\n\n"

    def last_events(self, request: Request) -> bytes:
        if (self.body.get("stream_options") or {}).get("include_usage"):
            return self.event(request, [], self.usage(request)) + SSE_DONE
        return SSE_DONE

    def whole(self, request: Request, reason: str) -> dict[str, Any]:
        text = {"text": words(0, request.produced).decode()}
        return loads(self.event(request, [choice(text, reason)], self.usage(request))[6:])


class Chat(Completions):
    """`/v1/chat/completions`: the role, then one piece of content per event, then the reason."""

    name = "chat.completion.chunk"

    def prompt(self) -> tuple[Any, int]:
        messages = self.body.get("messages")
        if not isinstance(messages, list) or not messages:
            raise ValueError("messages: a non-empty list is required")
        self.body["prompt"] = "\n".join(str(m.get("content")) for m in messages)
        return super().prompt()

    def chunk(self, request: Request, reason: str | None) -> bytes:
        deltas: list[dict[str, Any]] = [{"content": words(request.sent, request.produced).decode()}]
        if not request.sent:
            deltas.insert(0, {"role": "assistant", "content": ""})
        events = [self.event(request, [choice({"delta": delta}, None)]) for delta in deltas]
        if reason:
            events.append(self.event(request, [choice({"delta": {}}, reason)]))
        return b"".join(events)

    def whole(self, request: Request, reason: str) -> dict[str, Any]:
        text = words(0, request.produced).decode()
        message = {"message": {"role": "assistant", "content": text}}
        event = self.event(request, [choice(message, reason)], self.usage(request))
        return {**loads(event[6:]), "object": "chat.completion"}


def choice(content: dict[str, Any], reason: str | None) -> dict[str, Any]:
    return {"index": 0, **content, "logprobs": None, "finish_reason": reason, "matched_stop": None}


def finish_reason(request: Request, reason: str) -> dict[str, Any]:
    detail = {"length": request.produced} if reason == "length" else {"matched": 2}
    return {"type": reason, **detail}


def send_oddly(connection: "Connection", event: bytes) -> None:
    """SB13: what a correct reader of server-sent events must bear."""
    event = event.replace(b"tok", "tök".encode()).replace(b"data: ", b"data:")
    event = b": ping\r\n\r\n" + event.replace(b"\n", b"\r\n")
    middle = event.find("ö".encode()) + 1 or len(event) // 2  # inside the character
    for part in (event[:3], event[3:middle], event[middle:]):
        connection.send_chunk(part)


class Api:
    """One method per route, found by `ROUTES`."""

    def __init__(self, server: "Server") -> None:
        self.server = server
        self.requests = 0

    def handle(
        self, connection: "Connection", method: str, path: str, query: str, body: bytes
    ) -> None:
        methods, answer = ROUTES.get(path, ("", None))
        if answer is None:
            connection.respond(404, b'{"detail":"Not Found"}')
        elif method not in methods.split():
            connection.respond(405, b'{"detail":"Method Not Allowed"}')
        else:
            answer(self, connection, query, body)

    def health(self, connection: "Connection", query: str, body: bytes) -> None:
        if self.server.state == "up" and self.server.settings.health_ms:
            self.server.loop.after(
                self.server.settings.health_ms / 1e3, lambda: connection.respond(200)
            )
        else:
            connection.respond(200 if self.server.state == "up" else 503)

    def health_generate(self, connection: "Connection", query: str, body: bytes) -> None:
        engine, busy = self.server.engine, self.server.faults.get("health_busy")
        if engine.dead:
            self.server.loop.after(HEALTH_CHECK_TIMEOUT_S, lambda: connection.respond(503))
        elif self.server.state != "up" or (busy and len(engine.running) >= int(busy.arg)):
            connection.respond(503)
        elif engine.idle:
            self.server.loop.after(engine.ttft_s, lambda: connection.respond(200))
        else:
            connection.respond(200)

    def server_info(self, connection: "Connection", query: str, body: bytes) -> None:
        connection.respond(200, dumps(self.server.info()))

    def model_info(self, connection: "Connection", query: str, body: bytes) -> None:
        info = self.server.info()
        keys = ("model_path", "served_model_name", "tokenizer_path", "load_format")
        connection.respond(
            200,
            dumps(
                {key: info[key] for key in keys}
                | {"is_generation": True, "weight_version": "default", "model_type": "standin"}
            ),
        )

    def models(self, connection: "Connection", query: str, body: bytes) -> None:
        name = self.server.info()["served_model_name"]
        card = {
            "id": name,
            "object": "model",
            "created": int(self.server.started),
            "owned_by": "sglang",
            "root": name,
            "parent": None,
            "max_model_len": self.server.context_length,
        }
        connection.respond(200, dumps({"object": "list", "data": [card]}))

    def loads(self, connection: "Connection", query: str, body: bytes) -> None:
        engine = self.server.engine
        load = {
            "dp_rank": 0,
            "num_running_reqs": len(engine.running),
            "num_waiting_reqs": len(engine.waiting),
            "num_used_tokens": self.server.kv_tokens(),
            "max_total_num_tokens": engine.capacity,
            "max_running_requests": engine.slots,
            "token_usage": self.server.kv_tokens() / engine.capacity,
            "gen_throughput": engine.gen_throughput,
        }
        connection.respond(200, dumps({"version": __version__, "loads": [load]}))

    def metrics(self, connection: "Connection", query: str, body: bytes) -> None:
        if not self.server.args["enable_metrics"]:
            connection.respond(404, b'{"detail":"Not Found"}')
            return
        engine = self.server.engine
        gauges = {
            "num_running_reqs": len(engine.running),
            "num_queue_reqs": len(engine.waiting),
            "num_used_tokens": self.server.kv_tokens(),
            "token_usage": self.server.kv_tokens() / engine.capacity,
            "gen_throughput": engine.gen_throughput,
        }
        label = f'{{model_name="{self.server.args["served_model_name"]}"}}'
        lines = [f"# TYPE sglang:{k} gauge\nsglang:{k}{label} {v}\n" for k, v in gauges.items()]
        connection.respond(200, "".join(lines).encode(), "text/plain; version=0.0.4")

    def flush_cache(self, connection: "Connection", query: str, body: bytes) -> None:
        engine = self.server.engine

        def answer() -> None:
            if engine.idle and "flush_refused" not in self.server.faults:
                engine.seen.clear()
                self.server.event("flush", ok=True)
                connection.respond(200, b"Cache flushed.\n", "text/plain")
            elif not connection.closed:
                self.server.event("flush", ok=False)
                connection.respond(400, b"Flush cache failed.\n", "text/plain")

        timeout = float(dict(p.partition("=")[::2] for p in query.split("&")).get("timeout") or 0)
        if engine.idle or not timeout:
            answer()
            return
        pending = [answer]
        once: Callable[[], None] = lambda: pending.pop()() if pending else None  # noqa: E731
        engine.when_idle.append(once)
        self.server.loop.after(timeout, once)

    def generate(self, connection: "Connection", query: str, body: bytes) -> None:
        if b"[[" in body and self.start_batch(connection, body):
            return
        self.start(connection, Native, body)

    def start_batch(self, connection: "Connection", body: bytes) -> bool:
        """Take up a list of prompts; False: it is none."""
        from sglang.standin_batch import Batch  # it needs this module

        try:
            asked = loads(body)
            first = (asked.get("input_ids") or [None])[0]
            if not isinstance(first, list):
                return False
            batch = Batch(self, connection, asked)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            connection.respond(400, dumps({"error": {"message": str(error)}}))
        else:
            batch.submit()
        return True

    def start_record(self, connection: "Connection", query: str, body: bytes) -> None:
        self.record(connection, "start")

    def stop_record(self, connection: "Connection", query: str, body: bytes) -> None:
        self.record(connection, "stop")

    def dump_record(self, connection: "Connection", query: str, body: bytes) -> None:
        self.record(connection, "dump")

    def record(self, connection: "Connection", what: str) -> None:
        """Tell the recorder of experts; the real server's scheduler dies where there is none."""
        if self.server.recorder is None:
            connection.respond(400, b'{"error":"Please set expert_distribution_recorder_mode"}')
            return
        getattr(self.server.recorder, what)()
        connection.respond(200, b"", "text/plain")

    def start_profile(self, connection: "Connection", query: str, body: bytes) -> None:
        from sglang.standin_profile import Profiler  # it takes gzip, which only a profile pays

        if self.server.profiler is None:
            self.server.profiler = Profiler(self.server.args["tp_size"])
        done = self.server.profiler.start(loads(body))
        connection.respond(200 if done else 500, b"", "text/plain")

    def stop_profile(self, connection: "Connection", query: str, body: bytes) -> None:
        done = self.server.profiler is not None and self.server.profiler.stop()
        connection.respond(200 if done else 500, b"", "text/plain")

    def completions(self, connection: "Connection", query: str, body: bytes) -> None:
        self.start(connection, Completions, body)

    def chat(self, connection: "Connection", query: str, body: bytes) -> None:
        self.start(connection, Chat, body)

    def start(self, connection: "Connection", kind: type[Form], body: bytes) -> None:
        """Read a request, let the faults at it, give it to the engine."""
        server = self.server
        if not server.takes_requests():
            connection.respond(503, b'{"error":{"message":"The server is not ready."}}')
            return
        try:
            form = kind(server, loads(body))
            key, prompt_tokens = form.prompt()
            max_new_tokens = form.max_new_tokens()
            if not isinstance(max_new_tokens, int) or max_new_tokens < 1:
                max_new_tokens = 16
        except (AttributeError, TypeError, ValueError) as error:
            connection.respond(400, dumps({"error": {"message": str(error)}}))
            return
        self.requests += 1
        request = Request(self.requests, connection, form, bool(form.body.get("stream")))
        request.key, request.prompt_tokens = key, prompt_tokens
        request.max_new_tokens = request.length = max_new_tokens
        server.event(
            "request",
            n=request.number,
            id=request.rid,
            prompt_tokens=prompt_tokens,
            max_new_tokens=max_new_tokens,
            stream=request.stream,
        )
        if self.too_long(request) or any(f(server, request) for f in server.request_faults):
            return
        if request.stream:
            connection.start_stream()
        server.engine.submit(request)

    def too_long(self, request: Request) -> bool:
        """As the real server: the error of a stream comes inside it, after a 200."""
        limit = self.server.context_length
        if request.prompt_tokens + request.max_new_tokens <= limit:
            return False
        message = (
            f"Requested token count exceeds the model's maximum context length of {limit} tokens. "
            f"You requested a total of {request.prompt_tokens + request.max_new_tokens} tokens: "
            f"{request.prompt_tokens} tokens from the input messages and "
            f"{request.max_new_tokens} tokens for the completion."
        )
        self.server.log(f"[http_server] Error: {message}", level=40)
        self.server.event_finished(request, "too_long")
        error = {"error": {"message": message, "type": "invalid_request_error", "code": 400}}
        if request.stream:
            request.connection.start_stream()
            request.connection.send_chunk(b"data: " + dumps(error) + b"\n\n" + SSE_DONE)
            request.connection.end_stream()
        else:
            request.connection.respond(400, dumps(error))
        return True


Route = Callable[[Api, "Connection", str, bytes], None]
ROUTES: dict[str, tuple[str, Route]] = {
    "/health": ("GET", Api.health),
    "/health_generate": ("GET", Api.health_generate),
    "/server_info": ("GET", Api.server_info),
    "/get_server_info": ("GET", Api.server_info),
    "/model_info": ("GET", Api.model_info),
    "/get_model_info": ("GET", Api.model_info),
    "/v1/models": ("GET", Api.models),
    "/v1/loads": ("GET", Api.loads),
    "/metrics": ("GET", Api.metrics),
    "/flush_cache": ("GET POST", Api.flush_cache),
    "/start_expert_distribution_record": ("GET POST", Api.start_record),
    "/stop_expert_distribution_record": ("GET POST", Api.stop_record),
    "/dump_expert_distribution_record": ("GET POST", Api.dump_record),
    "/start_profile": ("GET POST", Api.start_profile),
    "/stop_profile": ("GET POST", Api.stop_profile),
    "/generate": ("POST PUT", Api.generate),
    "/v1/completions": ("POST", Api.completions),
    "/v1/chat/completions": ("POST", Api.chat),
}
