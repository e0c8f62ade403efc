"""Trials of the bench of load clients with made-up figures, and its server, compiled once."""

import shutil

import pytest

from perf.lockstep.account import Waits
from perf.lockstep.server import Record, Streamed, build
from perf.lockstep.trial import Trial, Use
from perf.lockstep.truth import Errors, Truth


@pytest.fixture
def record():
    """A record of requests, each given as (arrived, token, token, ...) in milliseconds."""

    def record(*requests, asked=None):
        return Record(
            ticks=9,
            missed_ticks=0,
            longest_tick_ms=1.0,
            requests=tuple(
                Streamed(1000 * arrived, 64, asked or len(sent), tuple(1000 * at for at in sent))
                for arrived, *sent in requests
            ),
        )

    return record


@pytest.fixture
def trial():
    """A trial in which everything was right, but for what is given."""

    def trial(
        client="ours",
        streams=8,
        tokens=32,
        cpu_s=0.1,
        errors=(0.0, 0.0, 0.0),
        missed_ticks=0,
        foreign_cores=0.0,
        waited=0.0,
    ):
        ttft_ms, tpot_percent, itl_ms = errors
        return Trial(
            client=client,
            streams=streams,
            truth=Truth(streams, streams * tokens, 100.0, 100.0, 100.0, 0.75 * streams),
            errors=Errors(ttft_ms, tpot_percent, itl_ms),
            use=Use(cpu_s, 4.0, 2.0, Waits(0.5, waited, 2 * waited), 40, 4),
            missed_ticks=missed_ticks,
            longest_tick_ms=3.0,
            foreign_cores=foreign_cores,
        )

    return trial


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """The lock-step server."""
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    return build(tmp_path_factory.mktemp("lockstep"))
