"""A load point as the server saw it, from made-up batches."""

import time

import pytest

from sgmatrix.load.serverview import server_view
from sgmatrix.node.batchlog import BatchLine


def decode(running, tok_s, *, at=0.0, queued=0, rank=0, usage=0.1, **more):
    return BatchLine(at, "decode", rank, running, queued, usage, output_tok_s=tok_s, **more)


def prefill(running, new=64, cached=0, *, rank=0):
    return BatchLine(0.0, "prefill", rank, running, 0, new_tokens=new, cached_tokens=cached)


def test_what_ran_and_what_waited_is_taken_from_the_decode_lines():
    lines = [prefill(0), decode(8, 900.0, usage=0.2), decode(4, 500.0, queued=2, usage=0.5)]
    view = server_view(lines, asked=None)

    assert (view.decode_lines, view.running_mean, view.running_max) == (2, 6.0, 8)
    assert (view.queued_max, view.queued_share, view.token_usage_max) == (2, 0.5, 0.5)
    assert view.peak_output_tok_s == 900.0


def test_who_waits_while_enough_run_waits_for_nothing():
    lines = [decode(8, 900.0, queued=1), decode(4, 500.0, queued=1)]

    assert server_view(lines, asked=7.6).queued_share == 0.5
    assert server_view(lines, asked=3.8).queued_share == 0.0


def test_the_cached_share_is_of_all_prompt_tokens():
    lines = [prefill(0, new=30, cached=10), prefill(1, new=50, cached=10)]

    assert server_view(lines, None).cached_share == 0.2


def test_what_a_retracted_request_finds_of_itself_is_no_hit_of_others():
    again = [BatchLine(0.0, "retract", 0, retracted=8), prefill(56, new=64, cached=8 * 255)]

    assert server_view([prefill(0, new=90, cached=10), *again], None).cached_share == 0.1
    assert server_view(again, None).cached_share is None


def test_the_server_s_own_tpot_is_the_mean_time_per_step_where_it_was_busy():
    lines = [
        prefill(0),
        decode(8, 50.0),  # this rate counts the idle time before
        decode(8, 1000.0),  # 8 ms a step
        prefill(8),  # more work, no idle time
        decode(12, 1000.0),  # 10 ms a step, 10 ran in the mean
        decode(12, 2000.0),  # 6 ms
        prefill(0),  # it was idle
        decode(8, 10.0),
    ]

    assert server_view(lines, None).tpot_ms == pytest.approx((8 + 10 + 6) / 3)


def test_two_steps_are_too_few_for_a_tpot():
    lines = [decode(1, 9.0), decode(1, 100.0), decode(1, 100.0)]

    assert server_view(lines, None).tpot_ms is None


def test_ranks_are_added_up():
    lines = [
        decode(3, 300.0, at=1.0),
        decode(5, 500.0, at=1.0, rank=1),
        decode(3, 900.0, at=2.0),  # of the other rank counts what it said last
        decode(5, 500.0, at=2.0, rank=1),
    ]
    view = server_view(lines, None)

    assert (view.running_mean, view.running_max) == (8.0, 8)
    assert view.peak_output_tok_s == 1400.0


def test_the_first_rate_of_a_rank_is_no_peak():
    """It is over a time that began before the point: 40 tokens since a pause of 10 s."""
    first = [decode(1, 4.0, at=2.0, rank=r) for r in range(8)]
    view = server_view(first, None)

    assert (view.decode_lines, view.rank_lines, view.peak_output_tok_s) == (8, 1, None)
    both = [*first, *(decode(1, 50.0, at=3.0, rank=r) for r in range(8))]
    assert server_view(both, None).peak_output_tok_s == 400.0


def test_a_rank_that_begins_late_hides_no_peak():
    lines = [decode(8, 800.0, at=s) for s in (1, 2, 3, 4)]
    lines += [decode(1, 100.0, at=s, rank=1) for s in (8, 9, 10, 11)]

    assert server_view(lines, None).peak_output_tok_s == 800.0


def test_a_line_for_every_step_is_read_in_no_time():
    """40,000 steps of 15 ms are ten minutes; a median for each line took minutes."""
    lines = [decode(8, 533.0, at=step * 15 // 1000) for step in range(40_000)]
    began_s = time.process_time()

    assert server_view(lines, None).running_mean == 8
    assert time.process_time() - began_s < 10


def test_a_rank_that_has_nothing_left_runs_nothing():
    """Both ran 8 until second 3, then rank 1 alone until second 9."""
    lines = [decode(8, 400.0, at=s, rank=r) for s in (1, 2, 3) for r in (0, 1)]
    lines += [decode(8, 400.0, at=s, rank=1) for s in range(4, 10)]

    # of both: five lines, and the one within an interval of the last word of rank 0
    assert server_view(lines, None).running_mean == (6 * 16 + 5 * 8) / 11


def test_a_rank_that_pauses_runs_nothing_meanwhile_and_then_goes_on():
    lines = [decode(8, 400.0, at=s, rank=0) for s in range(1, 21)]
    lines += [decode(4, 400.0, at=s, rank=1) for s in (1, 2, 3, 19, 20)]
    lines.sort(key=lambda line: (line.time_s, line.rank))

    # 12 in seconds 1 to 4 and from its next word on; 8 in the 15 lines between
    assert server_view(lines, None).running_mean == (6 * 12 + 15 * 8 + 3 * 12) / 24


def test_ranks_that_log_several_times_a_second_are_not_silent():
    lines = [decode(8, 400.0, at=s, rank=r) for s in (1, 1, 1, 2, 2, 3) for r in (0, 1)]

    assert server_view(lines, None).running_mean == 16


@pytest.mark.parametrize(
    ("lines", "want"),
    [
        ([decode(8, 800.0)] * 4, 10.0),
        # the one line after a prefill would make it 12 ms in the mean
        ([decode(8, 800.0)] * 4 + [prefill(8), decode(8, 400.0)], 10.0),
        ([decode(8, 800.0)] * 3, None),  # two steps are too few
        # most tokens are of steps with a prefill: 3 clean lines of 8 with one request each
        ([prefill(8), decode(8, 400.0)] * 4 + [decode(1, 800.0)] * 3, None),
        # the median counts tokens: 3 spans of 1 request, 3 of 8
        ([decode(1, 500.0)] * 4 + [decode(8, 800.0)] * 3, 10.0),
        ([decode(8, 800.0, accept_len=2.5)] * 4, None),
        ([decode(8, 800.0, accept_len=1.0)] * 4, 10.0),
        ([decode(8, 800.0, pipelined=True)] * 4, None),
    ],
)
def test_a_usual_step_is_one_without_a_prefill(lines, want):
    steps = server_view(lines, None).steps

    assert (steps and steps.median_ms) == want


def test_steps_that_differ_bound_the_median_and_the_mean_of_all():
    """Of 100 tokens 60 are of steps without a prefill: 20 of 4 ms, 20 of 5, 10 of 8, 10 of 10.

    The median of all is beyond 10 of the 60 if the other 40 are shorter, and 50 if longer.
    """
    lines = [decode(10, 2500.0), *(decode(10, rate) for rate in (2500.0, 2500.0, 2000.0, 2000.0))]
    lines += [decode(10, 1250.0), decode(10, 1000.0)]
    lines += [prefill(10), decode(10, 400.0)] * 3
    steps = server_view(lines, None).steps

    assert (steps.median_ms, steps.least_median_ms, steps.most_median_ms) == (5.0, 4.0, 8.0)
    assert steps.least_mean_ms == pytest.approx((2 * 4 + 2 * 5 + 8 + 10 + 4 * 4) / 10)


def test_retractions_are_counted_and_graphs_are_a_share():
    lines = [
        decode(4, 1.0, graph=True),
        BatchLine(0.0, "retract", 0, retracted=3),
        decode(4, 1.0, graph=False),
        BatchLine(0.0, "retract", 0, retracted=4),
    ]
    view = server_view(lines, None)

    assert (view.retracted, view.graph_share) == (7, 0.5)


def test_a_server_that_logs_no_batch_says_nothing():
    view = server_view([], asked=8)

    assert (view.decode_lines, view.rank_lines) == (0, 0)
    said = {name: value for name, value in vars(view).items() if "_lines" not in name}
    assert set(said.values()) == {None}
