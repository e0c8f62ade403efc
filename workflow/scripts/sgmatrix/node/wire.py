"""A few plain HTTP requests to a server on this machine; standard library only, small."""

from __future__ import annotations

import http.client
import json
from typing import Any


def request(
    port: int, method: str, path: str, body: dict[str, Any] | None = None, *, timeout_s: float
) -> tuple[int, bytes]:
    """Return status and body.

    Raises:
        OSError: when nobody answers in time, or the answer is no HTTP.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        payload = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        connection.request(method, path, payload, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except http.client.HTTPException as error:
        raise OSError(f"no HTTP answer: {error!r}") from error
    finally:
        connection.close()


def get_json(port: int, path: str, *, timeout_s: float) -> Any:
    """Return the JSON that a path answers with 200.

    Raises:
        OSError: when it does not.
    """
    status, body = request(port, "GET", path, timeout_s=timeout_s)
    if status != 200:
        raise OSError(f"{path} answered {status}")
    try:
        return json.loads(body)
    except ValueError as error:
        raise OSError(f"{path} answered no JSON") from error
