"""How long threads waited for a CPU, on counters made by hand; in nanoseconds."""

import pytest

from sgmatrix.node.telemetry.runqueue import Delay, RunQueue

MS = 1_000_000


class Threads:
    """Counters by process and thread, and how often they were read."""

    def __init__(self):
        self.of = {1: {1: (0, 0)}}
        self.reads = 0

    def read(self, pid):
        self.reads += 1
        return dict(self.of.get(pid, {}))


@pytest.fixture
def threads():
    return Threads()


def test_the_delay_is_a_share_of_the_time_that_threads_wanted_to_run(threads):
    queue = RunQueue(threads.read)
    threads.of[1] = {1: (500 * MS, 400 * MS)}
    assert queue.look(10.0, [1], 1) is None
    threads.of[1] = {1: (800 * MS, 500 * MS), 2: (100 * MS, 100 * MS)}  # 2 is new

    assert queue.look(10.5, [1], 2) == Delay(share=pytest.approx(200 / 600), cores=0.4)


def test_threads_that_sleep_have_no_share(threads):
    queue = RunQueue(threads.read)
    queue.look(0.0, [1], 1)

    assert queue.look(0.5, [1], 1) == Delay(share=None, cores=0.0)


def test_a_number_that_went_to_a_new_thread_gives_nothing_negative(threads):
    queue = RunQueue(threads.read)
    threads.of[1] = {5: (900 * MS, 900 * MS)}
    queue.look(0.0, [1], 1)
    threads.of[1] = {5: (30 * MS, 10 * MS)}

    assert queue.look(1.0, [1], 1) == Delay(share=0.25, cores=0.01)


def test_a_thread_that_ended_takes_nothing_back(threads):
    queue = RunQueue(threads.read)
    threads.of[1] = {1: (10 * MS, 0), 2: (999 * MS, 999 * MS)}
    queue.look(0.0, [1], 2)
    threads.of[1] = {1: (20 * MS, 10 * MS)}

    assert queue.look(1.0, [1], 1) == Delay(share=0.5, cores=0.01)


def test_without_processes_or_schedstat_nothing_is_known(threads):
    queue = RunQueue(threads.read)

    assert queue.look(0.0, [], 0) is None
    assert queue.look(1.0, [], 0) is None
    assert queue.look(2.0, [99], 1) is None


def test_a_large_server_is_looked_at_less_often_and_over_longer(threads):
    queue = RunQueue(threads.read)
    told = []
    for tick in range(7):
        threads.of[1] = {1: (tick * MS, tick * 3 * MS)}
        told.append(queue.look(float(tick), [1], 700))  # three times 256 and less

    assert threads.reads == 3
    assert [tick for tick, one in enumerate(told) if one] == [3, 6]
    assert told[6] == Delay(share=0.75, cores=pytest.approx(0.003))
