"""Start the stand-in server as a process of its own, and read what it says about itself.

For tests: `from standin.launcher import Standin`; pytest has `tests` on its path.
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

STANDIN = Path(__file__).parent
DEADLINE_S = 20


def eventually(condition: Callable[[], Any], what: str) -> Any:
    """Return the first true value of `condition`, or fail after the deadline."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.002)
    raise AssertionError(f"not within {DEADLINE_S} s: {what}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Standin:
    """One running stand-in."""

    def __init__(
        self, folder: Path, flags: tuple[str, ...], env: dict[str, str], port: int
    ) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.log_file = folder / f"{port}.log"
        self.events_file = folder / f"{port}.events.jsonl"
        command = [sys.executable, "-m", "sglang.launch_server", "--model-path", "tiny"]
        command += ["--served-model-name", "nonce", "--host", "127.0.0.1", "--port", str(port)]
        command += ["--standin-events", str(self.events_file), "--standin-life-s", "300", *flags]
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                env={**os.environ, "PYTHONPATH": str(STANDIN), **env},
                stderr=log,
            )

    # --- over HTTP ---

    def connect(self) -> closing[http.client.HTTPConnection]:
        return closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S))

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        with self.connect() as connection:
            connection.request(method, path, None if body is None else json.dumps(body))
            with connection.getresponse() as response:
                return response.status, response.read()

    def json(self, path: str) -> Any:
        status, body = self.ask("GET", path)
        assert status == 200
        return json.loads(body)

    def health(self) -> int | None:
        """Status of /health; None while nobody listens."""
        try:
            return self.ask("GET", "/health")[0]
        except ConnectionRefusedError:
            return None

    def generate(
        self, tokens: int = 4, prompt: Any = "a b c", stream: bool = True, path: str = "/generate"
    ) -> tuple[int, bytes]:
        key = "text" if isinstance(prompt, str) else "input_ids"
        parameters = {"max_new_tokens": tokens, "ignore_eos": True}
        return self.ask(
            "POST", path, {key: prompt, "stream": stream, "sampling_params": parameters}
        )

    # --- what it says ---

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def events(self, name: str) -> list[dict[str, Any]]:
        if not self.events_file.exists():
            return []
        lines = self.events_file.read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def outcomes(self) -> list[str]:
        """Outcome of each finished request, in order of arrival."""
        finished = sorted(self.events("finished"), key=lambda event: event["n"])
        return [event["outcome"] for event in finished]

    # --- life ---

    def wait_ready(self) -> "Standin":
        eventually(lambda: self.health() == 200 or self.process.poll() is not None, "ready")
        assert self.process.poll() is None, self.log()
        return self

    def exit_code(self) -> int:
        return self.process.wait(DEADLINE_S)

    def stop(self) -> int:
        self.process.terminate()
        return self.exit_code()


def keeping_time(
    launch: Callable[..., Standin], *flags: str, work: Callable[[Standin], Any]
) -> tuple[Standin, Any]:
    """Let `work` use a stand-in until one run has kept all its ticks; a late tick voids a run."""
    for _ in range(5):
        standin = launch(*flags)
        result = work(standin)
        standin.stop()
        if standin.events("stop")[0]["late_ticks"] == 0:
            return standin, result
    pytest.skip("this machine is too busy to keep the ticks: 5 runs, all with late ones")


def sse(body: bytes) -> list[Any]:
    """Payloads of a stream of server-sent events; the closing mark is the text [DONE]."""
    payloads = [part.removeprefix(b"data: ") for part in body.split(b"\n\n") if part]
    return [json.loads(p) if p != b"[DONE]" else "[DONE]" for p in payloads]


def alive(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
