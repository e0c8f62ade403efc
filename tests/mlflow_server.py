"""MLflow's own pages on a database, as `make ui` serves them.

with serving(results / "mlflow.db") as address:
    page.goto(address)
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

START_S = 90


@contextlib.contextmanager
def serving(
    store: Path | str,
    *,
    artifacts: Path | None = None,
    log: Path | None = None,
    cwd: Path = Path("/"),
) -> Iterator[str]:
    """Yield the address of a server; it and its workers are ended with the block.

    Args:
        store: an SQLite file, or the URI of another database.
        artifacts: folder for the artifacts that clients send.
        log: where its output goes.
        cwd: where it is started from.
    """
    uri = f"sqlite:///{store.resolve()}" if isinstance(store, Path) else store
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", uri]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    if artifacts is not None:
        command += ["--artifacts-destination", str(artifacts)]
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    address = f"http://127.0.0.1:{port}"
    with (log or Path(os.devnull)).open("w") as out:
        server = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **quiet},
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _await(server, f"{address}/health")
        yield address
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _await(server: subprocess.Popen[bytes], url: str) -> None:
    end = time.monotonic() + START_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            if server.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"mlflow server does not answer at {url}") from None
            time.sleep(0.1)
