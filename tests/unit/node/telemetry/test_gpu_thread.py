"""GPUs in a thread of their own: slow, hanging and dying drivers."""

import threading

import pytest

from sgmatrix.node.telemetry.gpu_thread import GpuThread
from sgmatrix.node.telemetry.gpus import Reading, Trouble
from standin.launcher import DEADLINE_S

BROKEN = RuntimeError("broken")


class Source:
    """GPUs that answer when they are let."""

    def __init__(self):
        self.now_s = 100.0
        self.open_gate, self.gate = threading.Event(), threading.Event()
        self.open_gate.set()
        self.gate.set()
        self.reading = threading.Event()
        self.error = None
        self.facts = {"driver": "1"}
        self.tell = None

    def open(self):
        assert self.open_gate.wait(DEADLINE_S)
        return self.facts

    def read(self):
        at_s = self.now_s
        self.reading.set()
        assert self.gate.wait(DEADLINE_S)
        if self.error:
            raise self.error
        return {"0": Reading(at_s, at_s, {"power_w": at_s})}

    def start(self):
        def make(tell):
            self.tell = tell
            return self

        return GpuThread(make, max_age_s=1.0, hangs_s=5.0, clock=lambda: self.now_s)


@pytest.fixture
def source():
    source = Source()
    yield source
    source.open_gate.set()
    source.gate.set()


def news(thread):
    found = []
    while not thread.news.empty():
        found.append(thread.news.get())
    return found


def test_a_reading_is_that_of_the_last_question(source):
    thread = source.start()
    for now_s in (100.0, 100.5):
        source.now_s = now_s
        thread.ask()
        assert thread.latest(DEADLINE_S) == {"0": Reading(now_s, now_s, {"power_w": now_s})}
    assert news(thread) == [{"facts": {"driver": "1"}}]


def test_a_slow_reading_is_handed_out_later_and_with_its_own_time(source):
    thread = source.start()
    thread.ask()
    first = thread.latest(DEADLINE_S)
    source.gate.clear()
    source.reading.clear()
    source.now_s = 100.5
    thread.ask()
    assert source.reading.wait(DEADLINE_S)

    assert thread.latest(0) == first
    source.now_s = 101.25
    thread.ask()  # is not a second one: the first is under way
    assert thread.latest(0) == {}  # 1.25 s old
    source.gate.set()
    assert thread.latest(DEADLINE_S)["0"].at_s == 100.5


def test_a_driver_that_hangs_is_told_once_and_may_come_back(source):
    thread = source.start()
    source.gate.clear()
    thread.ask()
    assert source.reading.wait(DEADLINE_S)
    for now_s in (104.0, 105.5, 106.0):
        source.now_s = now_s
        thread.ask()
        assert thread.latest(0) == {}

    hanging = {"source": "nvml", "kind": "hanging", "detail": "no answer for 5.5 s"}
    assert news(thread) == [{"facts": {"driver": "1"}}, {"error": hanging}]
    source.gate.set()
    thread.latest(DEADLINE_S)
    thread.ask()
    assert thread.latest(DEADLINE_S)["0"].values == {"power_w": 106.0}


def test_a_driver_that_is_slow_to_load_delays_nothing(source):
    source.open_gate.clear()
    thread = source.start()
    thread.ask()
    source.now_s = 104.0

    assert (thread.latest(0), news(thread)) == ({}, [])
    source.open_gate.set()
    assert thread.latest(DEADLINE_S)["0"].at_s == 104.0


def test_a_driver_that_never_loads_is_waited_for_by_nobody(source):
    source.facts = {}
    thread = source.start()
    source.tell(Trouble("nvml", "", "NVMLError", "Driver Not Loaded"))
    thread.ask()

    assert thread.latest(DEADLINE_S) == {}
    source.now_s = 999.0
    assert thread.latest(DEADLINE_S) == {}
    told = {"source": "nvml", "kind": "NVMLError", "detail": "Driver Not Loaded"}
    assert news(thread) == [{"error": told}]


def test_a_reader_that_fails_is_told_and_its_last_reading_is_gone(source):
    thread = source.start()
    thread.ask()
    assert thread.latest(DEADLINE_S)
    source.error = BROKEN
    thread.ask()

    assert thread.latest(DEADLINE_S) == {}
    told = {"source": "nvml", "kind": "RuntimeError", "detail": "broken"}
    assert news(thread) == [{"facts": {"driver": "1"}}, {"error": told}]
