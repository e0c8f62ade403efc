"""Traces made by hand, whose busy times, gaps and sums are worked out beside them."""

import pytest

from sgmatrix.analysis.kernels import tabulate

NAN_FREE = ("window_ms", "busy_ms", "busy_share", "gap_ms", "gap_longest_ms", "sum_ms")


def event(name, begin, took, *, cat="kernel", tid=7, ph="X"):
    return {"ph": ph, "cat": cat, "name": name, "pid": 0, "tid": tid, "ts": begin, "dur": took}


def op(name, begin, took, *, tid=1):
    return event(name, begin, took, cat="cpu_op", tid=tid)


def parts(table):
    return {row["component"]: (row["ms"], row["count"]) for row in table["rows"]}


# --- a GPU ---------------------------------------------------------------------------------------


def test_kernels_of_one_stream_and_the_gaps_between_them():
    # 1000 us gemm, 500 idle, 300 attention, 200 idle, 100 copy: window 2100, busy 1400
    table = tabulate(
        [
            event("nvjet_tst", 1000, 1000),
            event("fmhaSm100f", 2500, 300),
            event("Memcpy HtoD", 3000, 100, cat="gpu_memcpy"),
        ]
    )

    assert table["device"] == "gpu"
    assert [table[name] for name in NAN_FREE] == pytest.approx(
        [2.1, 1.4, 1400 / 2100, 0.7, 0.5, 1.4]
    )
    assert table["gaps"] == 2
    assert parts(table) == {"dense": (1.0, 1), "attention": (0.3, 1), "memcpy": (0.1, 1)}
    assert [row["share"] for row in table["rows"]] == pytest.approx([10 / 14, 3 / 14, 1 / 14])


def test_overlapping_streams_make_no_gap_and_their_sum_is_told_apart():
    # stream 7: 0 to 1000 and 1000 to 1600; stream 8: 400 to 1400, all within: 2600 in 1600
    table = tabulate(
        [
            event("nvjet_tst", 0, 1000),
            event("nvjet_tst", 1000, 600),
            event("ncclDevKernel_AllReduce", 400, 1000, tid=8),
        ]
    )

    assert [table[name] for name in NAN_FREE] == pytest.approx([1.6, 1.6, 1.0, 0.0, 0.0, 2.6])
    assert table["gaps"] == 0
    assert parts(table) == {"dense": (1.6, 2), "collectives": (1.0, 1)}


def test_a_long_kernel_covers_what_begins_and_ends_within_it():
    # the second one ends at 300, but the first one runs until 1000: no gap before 1000
    table = tabulate(
        [event("nvjet", 0, 1000), event("fmha", 100, 200, tid=8), event("nvjet", 1100, 100)]
    )

    assert (table["gaps"], table["gap_ms"], table["busy_ms"]) == (1, 0.1, 1.1)


def test_a_copy_is_a_copy_whatever_its_name():
    table = tabulate([event("nccl Memset", 0, 5, cat="gpu_memset")])

    assert parts(table) == {"memcpy": (0.005, 1)}


def test_what_the_cpu_does_does_not_count_where_there_are_kernels():
    table = tabulate([event("fmha", 0, 10), op("aten::linear", 0, 5000)])

    assert (table["device"], table["window_ms"]) == ("gpu", 0.01)
    assert parts(table) == {"attention": (0.01, 1)}


def test_a_name_that_nobody_knows_is_shown_as_other():
    table = tabulate([event("kernel_of_tomorrow", 0, 10), event("fmha", 10, 10)])

    assert parts(table)["other"] == (0.01, 1)
    assert table["rows"][-1]["top"] in (
        [{"name": "kernel_of_tomorrow", "ms": 0.01, "count": 1}],
        [{"name": "fmha", "ms": 0.01, "count": 1}],
    )


def test_the_five_largest_names_of_a_component_are_told():
    names = [event(f"nvjet_{n}", 100 * n, 10 * n) for n in range(1, 8)]
    (row,) = tabulate([*names, event("nvjet_7", 900, 1)])["rows"]

    assert [one["name"] for one in row["top"]] == [f"nvjet_{n}" for n in (7, 6, 5, 4, 3)]
    assert row["top"][0] == {"name": "nvjet_7", "ms": 0.071, "count": 2}
    assert row["count"] == 8


# --- a CPU ---------------------------------------------------------------------------------------


def test_nested_operators_are_counted_once_as_the_outermost():
    # linear 0 to 600 holds transpose and mm; its own name counts, 600 and not 600 + 500 + 20
    table = tabulate(
        [
            op("aten::mm", 60, 500),
            op("aten::linear", 0, 600),
            op("aten::transpose", 10, 20),
            op("aten::add", 600, 100),
            op("aten::topk", 800, 50),
        ]
    )

    assert table["device"] == "cpu"
    assert [table[name] for name in NAN_FREE] == pytest.approx(
        [0.85, 0.75, 750 / 850, 0.1, 0.1, 0.75]
    )
    assert parts(table) == {"dense": (0.6, 1), "elementwise": (0.1, 1), "other": (0.05, 1)}


def test_an_operator_that_begins_with_the_one_around_it_is_nested():
    table = tabulate([op("aten::mm", 0, 400), op("aten::linear", 0, 500)])

    assert parts(table) == {"dense": (0.5, 1)}
    assert table["rows"][0]["top"] == [{"name": "aten::linear", "ms": 0.5, "count": 1}]


def test_operators_of_two_threads_overlap():
    table = tabulate([op("aten::linear", 0, 500), op("aten::add", 100, 500, tid=2)])

    assert (table["window_ms"], table["busy_ms"], table["sum_ms"]) == (0.6, 0.6, 1.0)


# --- steps, and nothing --------------------------------------------------------------------------


def test_steps_are_counted_by_their_name():
    marks = [event(f"step[{one}]", 0, 1, cat="user_annotation") for one in ("DECODE bs=8",) * 3]
    prefill = event("step[EXTEND bs=1 toks=64]", 0, 1, cat="user_annotation")
    other = event("scheduler.run_batch", 0, 1, cat="user_annotation")
    twin = event("step[DECODE bs=8]", 0, 1, cat="gpu_user_annotation")

    assert tabulate([*marks, prefill, other, twin])["steps"] == {
        "DECODE bs=8": 3,
        "EXTEND bs=1 toks=64": 1,
    }


def test_of_a_trace_in_which_nothing_ran_nothing_is_known():
    table = tabulate([event("process_name", 0, 0, ph="M"), {"ph": "i", "name": "x", "ts": 1}])

    assert table["device"] is None
    assert [table[name] for name in (*NAN_FREE, "gaps")] == [None] * 7
    assert table["rows"] == []


def test_a_single_moment_has_no_share():
    table = tabulate([event("fmha", 5, 0)])

    assert (table["window_ms"], table["busy_share"]) == (0.0, None)
    assert table["rows"][0]["share"] is None
