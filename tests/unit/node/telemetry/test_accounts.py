"""Whose CPU time it was, on a process table made by hand; ticks of 10 ms."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgmatrix.node.proc import Identity
from sgmatrix.node.telemetry.accounts import Accounts
from sgmatrix.node.telemetry.procfs import PAGE_BYTES, ProcessStat

OWNER, JOB, WARDEN, SAMPLER, SERVER, RANK, STRANGER = 100, 110, 120, 130, 140, 150, 900


class Table:
    """Processes by pid, and the books on them."""

    def __init__(self):
        self.rows = {1: ProcessStat("S", 0, 1, 999, 999, 1, 1)}
        self.reads = []
        self.add(OWNER, 1, own=500)
        self.add(JOB, OWNER, own=50)
        self.add(WARDEN, JOB, own=20)
        self.add(SAMPLER, WARDEN)
        self.add(STRANGER, 1, own=700)
        self.books = Accounts(
            Identity(WARDEN, WARDEN, "b"),
            Identity(OWNER, OWNER, "b"),
            sampler=SAMPLER,
            pids=lambda: list(self.rows),
            read=self.read,
        )

    def read(self, pid):
        self.reads.append(pid)
        return self.rows.get(pid)

    def add(self, pid, parent, *, own=0, waited=0, started=None, threads=1):
        self.rows[pid] = ProcessStat("S", parent, started or pid, own, waited, threads, 10)

    def use(self, pid, ticks):
        self.rows[pid] = replace(self.rows[pid], own=self.rows[pid].own + ticks)

    def collect(self, pid, parent):
        """The end of a process that its parent waits for."""
        gone = self.rows.pop(pid)
        before = self.rows[parent]
        self.rows[parent] = replace(before, waited=before.waited + gone.own + gone.waited)

    def used(self):
        """(engine, harness) ticks since the first look."""
        usage = self.books.look()
        return usage.engine_ticks, usage.harness_ticks


@pytest.fixture
def table():
    return Table()


def test_what_was_used_before_the_first_look_is_none_of_the_books(table):
    table.add(SERVER, WARDEN, own=1000, waited=300)

    assert table.used() == (0, 0)
    assert table.used() == (0, 0)


def test_the_engine_is_below_the_warden_and_the_harness_the_rest(table):
    table.add(SERVER, WARDEN)
    table.used()
    table.add(RANK, SERVER)
    for pid, ticks in ((SERVER, 1), (RANK, 2), (OWNER, 10), (JOB, 20), (WARDEN, 40)):
        table.use(pid, ticks)
    table.use(SAMPLER, 80)
    table.use(STRANGER, 1000)

    assert table.used() == (3, 150)


def test_new_processes_count_from_their_start_in_any_order_of_pids(table):
    table.used()
    table.add(5, 7, own=3)  # child before its parent in the listing
    table.add(7, WARDEN, own=4)
    table.add(6, STRANGER, own=50)

    assert table.used() == (7, 0)


def test_a_child_that_lived_between_two_looks_is_not_lost(table):
    table.add(SERVER, WARDEN)
    table.used()
    table.add(RANK, SERVER, own=9)
    table.collect(RANK, SERVER)

    assert table.used() == (9, 0)


def test_a_child_that_was_seen_alive_is_counted_once(table):
    table.add(SERVER, WARDEN)
    table.add(RANK, SERVER)
    table.used()
    table.use(RANK, 30)
    assert table.used() == (30, 0)
    table.use(RANK, 5)
    table.collect(RANK, SERVER)

    assert table.used() == (35, 0)
    assert table.used() == (35, 0)


def test_a_family_that_ends_at_once_is_counted_once(table):
    table.add(SERVER, WARDEN)
    table.add(RANK, SERVER)
    table.used()
    table.use(RANK, 30)
    table.use(SERVER, 8)
    assert table.used() == (38, 0)
    table.collect(RANK, SERVER)
    table.use(SERVER, 1)
    table.collect(SERVER, WARDEN)

    assert table.used() == (39, 0)


def test_a_child_that_is_collected_after_its_parent_was_read_is_counted_once(table):
    table.add(SERVER, WARDEN)
    table.add(RANK, SERVER)
    table.used()
    table.use(RANK, 30)
    table.used()
    stat = table.rows.pop(RANK)
    assert table.used() == (30, 0)  # gone, and not yet in its parent's time
    table.rows[SERVER] = replace(table.rows[SERVER], waited=stat.own)

    assert table.used() == (30, 0)


def test_a_child_that_nobody_collects_eats_no_later_time(table):
    table.add(SERVER, WARDEN)
    table.add(RANK, SERVER)
    table.used()
    table.use(RANK, 5000)
    table.used()
    del table.rows[RANK]
    assert table.used() == (5000, 0)
    assert table.used() == (5000, 0)
    table.use(SERVER, 7)
    table.rows[SERVER] = replace(table.rows[SERVER], waited=6)

    assert table.used() == (5013, 0)


def test_an_orphan_stays_on_its_side(table):
    table.add(SERVER, WARDEN)
    table.used()
    table.rows[WARDEN] = replace(table.rows[WARDEN], parent=1)
    table.rows[SERVER] = replace(table.rows[SERVER], parent=1)
    table.collect(JOB, OWNER)
    table.use(WARDEN, 2)
    table.use(SERVER, 3)

    assert table.used() == (3, 2)


def test_a_process_whose_parent_was_not_listed_is_found_at_the_next_look(table):
    table.used()
    table.add(RANK, SERVER, own=3)  # it was forked while we listed, after its parent
    assert table.used() == (0, 0)
    table.add(SERVER, WARDEN, own=2)

    assert table.used() == (5, 0)


def test_a_process_whose_parent_ended_while_we_looked_is_found_at_the_next_look(table):
    table.used()
    table.add(RANK, SERVER, own=3)
    assert table.used() == (0, 0)
    table.rows[RANK] = replace(table.rows[RANK], parent=WARDEN)

    assert table.used() == (3, 0)


def test_a_number_that_went_to_another_process_brings_nothing_along(table):
    table.add(SERVER, WARDEN)
    table.used()
    table.use(SERVER, 4)
    table.used()
    table.add(SERVER, 1, own=7000, started=8888)

    assert table.used() == (4, 0)
    assert table.books.look().engine_pids == []


def test_only_an_identity_is_the_warden_or_the_owner(table):
    table.rows[WARDEN] = replace(table.rows[WARDEN], started=WARDEN + 1)
    table.add(SERVER, WARDEN)
    usage = table.books.look()

    assert (usage.engine_pids, usage.warden_alive) == ([], False)


def test_the_end_of_the_warden_is_noticed(table):
    assert table.books.look().warden_alive
    table.rows[WARDEN] = replace(table.rows[WARDEN], state="Z")
    assert not table.books.look().warden_alive
    del table.rows[WARDEN]
    assert not table.books.look().warden_alive


def test_the_engine_as_it_is_now_has_no_zombies(table):
    table.add(SERVER, WARDEN, threads=7)
    table.add(RANK, SERVER, threads=5)
    table.add(RANK + 1, SERVER, threads=3)
    table.rows[RANK + 1] = replace(table.rows[RANK + 1], state="Z")
    usage = table.books.look()

    assert usage.engine_pids == [SERVER, RANK]
    assert (usage.engine_threads, usage.engine_rss_bytes) == (12, 20 * PAGE_BYTES)


def test_what_was_the_engine_once_is_no_stranger_on_a_gpu(table):
    table.add(SERVER, WARDEN)
    table.used()
    table.collect(SERVER, WARDEN)
    table.used()

    assert table.books.was_engine(SERVER)
    assert not table.books.was_engine(STRANGER)
    assert not table.books.was_engine(SAMPLER)


def test_strangers_are_read_once_and_again_after_a_while(table):
    for _ in range(120):
        table.used()
    assert table.reads.count(STRANGER) == 1
    table.used()

    assert table.reads.count(STRANGER) == 2


@given(st.lists(st.tuples(st.sampled_from(["use", "fork", "end"]), st.integers(1, 9)), max_size=40))
def test_every_tick_of_a_tree_is_counted_exactly_once(story):
    table = Table()
    table.add(SERVER, WARDEN)
    table.used()
    truth, children, last, numbers = 0, [], 0, itertools.count(1000)
    for what, n in story:
        if what == "fork":
            pid = next(numbers)
            table.add(pid, SERVER, own=n)
            children.append(pid)
            truth += n
        elif what == "use":
            table.use(children[-1] if children else SERVER, n)
            truth += n
        elif children:
            table.collect(children.pop(), SERVER)
        if n % 2:
            engine, harness = table.used()
            assert (engine, harness) == (truth, 0)
            assert engine >= last
            last = engine
    assert table.used() == (truth, 0)
