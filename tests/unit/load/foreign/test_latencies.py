"""Which latencies of a line were never measured, and whether that has a cause."""

import pytest

from sgmatrix.load.foreign.latencies import STATS, settle

ROW = {"completed": 2, "output_tokens": 8, "output_len": 4}


def of(**latencies):
    """A row with one value for all statistics of each latency."""
    return ROW | {f"{name}_ms_{stat}": v for name, v in latencies.items() for stat in STATS}


def columns(*latencies):
    return {f"{name}_ms_{stat}" for name in latencies for stat in STATS}


STREAMED = {"ttft": 10.0, "tpot": 2.0, "itl": 2.0, "e2e": 16.0}


@pytest.mark.parametrize(
    ("row", "tool", "missing", "streamed", "unexplained"),
    [
        (of(**STREAMED), "sglang", (), True, ()),
        (of(**STREAMED) | {"completed": 0}, "sglang", ("ttft", "tpot", "itl", "e2e"), None, ()),
        (of(**STREAMED) | {"output_tokens": 2}, "sglang", (), True, ()),  # not 0: a doubt
        (of(ttft=10, tpot=0, itl=0, e2e=10.2) | {"output_tokens": 2}, "sglang",
         ("tpot", "itl"), None, ()),
        (of(ttft=10, tpot=0, itl=0, e2e=10.0) | {"output_tokens": None, "output_len": 1},
         "sglang", ("tpot", "itl"), None, ()),
        (of(ttft=10, tpot=0, itl=0, e2e=10.0), "sglang", ("ttft", "tpot", "itl"), False, ()),
        (of(ttft=10, e2e=10.005), "sglang", ("ttft", "tpot", "itl"), False, ()),
        (of(ttft=10, tpot=0, itl=0, e2e=10.2), "sglang", ("tpot", "itl"), None, ("tpot", "itl")),
        (of(ttft=10, tpot=2, itl=2, e2e=10.0), "sglang", (), True, ()),
        (of(ttft=0, tpot=5, itl=0, e2e=20.0), "vllm", ("ttft", "tpot", "itl"), False, ()),
        (of(ttft=0, tpot=5, itl=0, e2e=20.0), "sglang", ("ttft", "itl"), None, ("ttft", "itl")),
        (of(ttft=0, tpot=5, itl=5, e2e=20.0), "vllm", ("ttft",), True, ("ttft",)),
        (of(ttft=10, tpot=2, e2e=16.0), "genai-bench", (), True, ()),
        (of(e2e=16.0), "sglang", (), None, ()),
        (ROW, "sglang", (), None, ()),
    ],
)  # fmt: skip
def test_a_latency_of_0_has_a_cause_or_is_unexplained(row, tool, missing, streamed, unexplained):
    settled = settle(row, tool)

    assert set(settled.missing) == columns(*missing)
    assert settled.streamed is streamed
    assert set(settled.unexplained) == columns(*unexplained)
