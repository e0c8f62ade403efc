"""The fixture `launch`: stand-ins that are gone after the test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from standin.launcher import Standin, free_port


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Standin]]:
    """A function that starts a stand-in with these flags; all of them are gone afterwards."""
    started: list[Standin] = []

    def start(
        *flags: str, env: dict[str, str] | None = None, wait: bool = True, port: int = 0
    ) -> Standin:
        started.append(Standin(tmp_path, flags, env or {}, port or free_port()))
        return started[-1].wait_ready() if wait else started[-1]

    yield start
    for standin in started:
        standin.process.kill()
        standin.process.wait()
