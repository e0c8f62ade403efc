"""Event loop and HTTP/1.1 of the stand-in: sockets, timers, keep-alive, chunked streams.

Own loop instead of asyncio, for two measured reasons (Python 3.11, 2 cores): importing asyncio
takes 30 ms, as long as the whole interpreter start, and its timers fire on whole milliseconds,
which would blur a 2 ms decode tick. Waiting on the epoll descriptor with `select` is exact to
tens of microseconds.

Not here  routes and bodies (`standin_api`), tokens and their times (`standin_engine`).
"""

import heapq
import os
import select
import signal
import socket
import time
from collections.abc import Callable

PHRASES = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
LAST_CHUNK = b"0\r\n\r\n"
READ, WRITE = select.EPOLLIN, select.EPOLLOUT


class Loop:
    """Sockets by epoll, timers by heap, signals by wake-up pipe."""

    def __init__(self) -> None:
        self.epoll = select.epoll()
        self.callbacks: dict[int, Callable[[int], None]] = {}
        self.timers: list[tuple[float, int, Callable[[], None]]] = []
        self.sequence = 0
        self.stopped = False

    def at(self, when: float, callback: Callable[[], None]) -> None:
        """Run `callback` at `when` on the monotonic clock."""
        self.sequence += 1
        heapq.heappush(self.timers, (when, self.sequence, callback))

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        self.at(time.monotonic() + seconds, callback)

    def watch(self, fd: int, callback: Callable[[int], None]) -> None:
        self.callbacks[fd] = callback
        self.epoll.register(fd, READ)

    def unwatch(self, fd: int) -> None:
        if self.callbacks.pop(fd, None):
            self.epoll.unregister(fd)

    def on_signals(self, handlers: dict[int, Callable[[], None]]) -> None:
        """Call a handler from the loop, never from inside another callback."""
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        os.set_blocking(write_end, False)
        for number in handlers:
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)

        def dispatch(_mask: int) -> None:
            for number in os.read(read_end, 64):
                handlers[number]()

        self.watch(read_end, dispatch)

    def run(self) -> None:
        ready, poll = [self.epoll.fileno()], self.epoll.poll
        callbacks, timers = self.callbacks, self.timers
        while not self.stopped:
            timeout = max(0.0, timers[0][0] - time.monotonic()) if timers else None
            select.select(ready, [], [], timeout)
            for fd, mask in poll(0):
                callback = callbacks.get(fd)
                if callback:
                    callback(mask)
            while timers and timers[0][0] <= time.monotonic() and not self.stopped:
                heapq.heappop(timers)[2]()


class Connection:
    """One client: reads a request at a time, answers whole or as a chunked stream."""

    def __init__(self, server: "HttpServer", sock: socket.socket, address: tuple[str, int]) -> None:
        self.server = server
        self.sock = sock
        self.fd = sock.fileno()
        self.client = f"{address[0]}:{address[1]}"
        self.received = b""
        self.unsent = bytearray()
        self.request_line = ""
        self.busy = False  # a request is being answered; the next one waits in `received`
        self.keep_alive = True
        self.close_when_sent = False
        self.closed = False
        self.on_lost: Callable[[], None] | None = None
        server.loop.watch(self.fd, self.on_event)

    def on_event(self, mask: int) -> None:
        if mask & WRITE:
            self.flush()
        if mask & ~WRITE and not self.closed:
            try:
                data = self.sock.recv(262144)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.lost()
                return
            self.received += data
            self.next_request()

    def next_request(self) -> None:
        while not (self.busy or self.closed):
            head, separator, rest = self.received.partition(b"\r\n\r\n")
            if not separator:
                return
            line, _, fields = head.partition(b"\r\n")
            headers = {}
            for field in fields.split(b"\r\n"):
                key, _, value = field.partition(b":")
                headers[key.lower()] = value.strip()
            length = int(headers.get(b"content-length", 0))
            if len(rest) < length:
                if headers.pop(b"expect", None):  # curl asks first when the body is long
                    self.received = line + b"\r\ncontent-length: %d\r\n\r\n" % length + rest
                    self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
                return
            self.received = rest[length:]
            self.busy = True
            self.keep_alive = headers.get(b"connection", b"").lower() != b"close"
            self.request_line = line.decode("latin-1")
            method, target, _ = (self.request_line + "  ").split(" ", 2)
            path, _, query = target.partition("?")
            self.server.handle(self, method, path, query, rest[:length])

    def respond(self, status: int, body: bytes = b"", kind: str = "application/json") -> None:
        self.server.access(self, status)
        self.send(
            b"HTTP/1.1 %d %b\r\nserver: uvicorn\r\ncontent-length: %d\r\ncontent-type: %b\r\n\r\n%b"
            % (status, PHRASES[status].encode(), len(body), kind.encode(), body)
        )
        self.finish()

    def start_stream(self) -> None:
        self.server.access(self, 200)
        self.send(
            b"HTTP/1.1 200 OK\r\nserver: uvicorn\r\n"
            b"content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
        )

    def send_chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%b\r\n" % (len(data), data))

    def end_stream(self) -> None:
        self.send(LAST_CHUNK)
        self.finish()

    def finish(self) -> None:
        """The answer is complete: close, or take up the next request on this connection."""
        self.on_lost = None
        self.busy = False
        if self.closed:
            return
        if not self.keep_alive:
            self.close_when_sent = True
            self.send(b"")
        elif self.received:
            self.server.loop.after(0, self.next_request)

    def send(self, data: bytes) -> None:
        if self.closed:
            return
        if self.unsent:  # a slow reader: keep the order
            self.unsent += data
            return
        try:
            sent = self.sock.send(data) if data else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            self.lost()
            return
        if sent < len(data):
            self.unsent += data[sent:]
            self.server.loop.epoll.modify(self.fd, READ | WRITE)
        elif self.close_when_sent:
            self.close()

    def flush(self) -> None:
        """The socket takes more: send on from `unsent`."""
        data = bytes(self.unsent)
        self.unsent.clear()
        self.server.loop.epoll.modify(self.fd, READ)
        self.send(data)

    def lost(self) -> None:
        """The client went away: tell whoever is producing the answer."""
        on_lost, self.on_lost = self.on_lost, None
        self.close()
        if on_lost:
            on_lost()

    def close(self) -> None:
        """Close at once, whatever is unsent or unanswered."""
        if not self.closed:
            self.closed = True
            self.server.loop.unwatch(self.fd)
            self.server.connections.discard(self)
            self.sock.close()


class HttpServer:
    """A listening socket; every complete request goes to `handle`."""

    def __init__(
        self,
        loop: Loop,
        handle: Callable[[Connection, str, str, str, bytes], None],
        access: Callable[[Connection, int], None],
    ) -> None:
        self.loop = loop
        self.handle = handle
        self.access = access
        self.connections: set[Connection] = set()

    def open(self, host: str, port: int) -> None:
        """Bind and listen; raises OSError when the port is taken."""
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((host, port))
        self.socket.listen(4096)
        self.socket.setblocking(False)
        self.loop.watch(self.socket.fileno(), self.accept)

    def accept(self, _mask: int) -> None:
        while True:
            try:
                sock, address = self.socket.accept()
            except OSError:  # nothing more to accept, or out of descriptors: try again later
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections.add(Connection(self, sock, address))
