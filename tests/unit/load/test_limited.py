"""What limited a load, the rate, the client or a queue: what raises each flag, what does not."""

import random
from itertools import accumulate, pairwise

import pytest

from builders import client_line
from judged import LIMITS, evidence, flags, steady, why
from sgmatrix.load.client_use import ClientUse
from sgmatrix.load.serverview import server_view
from sgmatrix.load.validity import findings
from sgmatrix.node.batchlog import BatchLine

OPEN = {"concurrency": None, "request_rate": 0.1}


def test_a_single_stream_at_a_low_rate_leaves_the_server_idle():
    """The classic `--request-rate 0.1 --max-concurrency 1` for a single-stream latency."""
    line = client_line(8, itl_s=0.83, duration_s=25.0)  # 8 x 2.5 s of work in 25 s

    assert flags(line, point=OPEN | {"max_concurrency": 1}) == ["rate_limited"]
    assert why(line, point=OPEN | {"max_concurrency": 1}) == (
        "at 0.1 requests/s 0.8 of at most 1 requests were in flight"
    )


def test_a_rate_that_fills_its_cap_limits_nothing():
    line = client_line(8, itl_s=0.83, duration_s=20.5)

    assert flags(line, point=OPEN | {"max_concurrency": 1}) == []


def test_a_full_cap_is_no_low_rate_though_one_request_failed():
    """100 requests/s, 2 in flight at the most, 8 requests of 1 s each: the cap was full."""
    line = client_line(8, failed=1, ttft_s=0.7, itl_s=0.1, duration_s=4.0)
    point = OPEN | {"request_rate": 100.0, "max_concurrency": 2}

    assert flags(line, {"min_completed_share": 0.8}, point=point) == []
    # at 1 request/s they would have come within 7 s: nothing held them back
    found = flags(line, {"min_completed_share": 0.8}, point=point | {"request_rate": 1.0})
    assert found == ["rate_limited"]


def test_ramp_and_tail_of_few_waves_are_no_low_rate():
    """3 requests of 1 s, 2 in flight at the most: 1.5 in the mean, and the cap was full."""
    line = client_line(3, ttft_s=0.7, itl_s=0.1, duration_s=2.0)

    assert flags(line, point=OPEN | {"request_rate": 100.0, "max_concurrency": 2}) == []
    assert flags(line, point=OPEN | {"request_rate": 1.0, "max_concurrency": 2}) == ["rate_limited"]


def test_requests_that_take_longer_than_they_come_are_limited_by_the_rate():
    """1 request/s for 8 requests of 10 s on a server with room for all: 7 of 17 s."""
    line = client_line(8, tokens=500, ttft_s=0.02, itl_s=0.02, duration_s=17.0)
    point = OPEN | {"request_rate": 1.0}

    assert flags(line, output_len=500, point=point) == ["rate_limited"]
    assert why(line, output_len=500, point=point) == (
        "8 requests, 1 a second, come for about 7 of the 17 s and had no queue, 4.7 of them at once"
    )


@pytest.mark.parametrize(
    ("burstiness", "requests", "duration_s", "want"),
    [
        (1.0, 8, 15.2, []),
        (1.0, 8, 14.9, ["rate_limited"]),
        (0.2, 8, 15.2, ["rate_limited"]),  # bursts stray further by chance
        (0.2, 8, 24.0, []),
        (100.0, 8, 10.0, []),  # arrivals like a clock
        (1.0, 128, 165.0, []),  # many stray less
        (1.0, 128, 155.0, ["rate_limited"]),
    ],
)
def test_a_late_last_request_is_chance_or_the_cap(burstiness, requests, duration_s, want):
    """1 request/s of 1 s each, 2 at once at the most: 8 come within 7 s, 128 within 127 s."""
    line = client_line(requests, ttft_s=0.7, itl_s=0.1, duration_s=duration_s)
    point = OPEN | {"request_rate": 1.0, "max_concurrency": 2, "burstiness": burstiness}

    assert flags(line, point=point) == want


def test_a_server_that_threw_requests_out_was_not_idle():
    line = client_line(8, duration_s=20.0)

    assert flags(line, point=OPEN | {"request_rate": 1.0}) == ["rate_limited"]
    assert flags(line, point=OPEN | {"request_rate": 1.0}, view={"retracted": 2}) == [
        "queue_limited"
    ]


@pytest.mark.parametrize(("last_s", "want"), [(0.15, ["rate_limited"]), (0.151, [])])
def test_a_server_whose_requests_take_longer_and_longer_falls_behind(last_s, want):
    """3 requests take 0.1 s to the first token, 3 more, and the last 3 longer; none waits."""
    line = client_line(9, tokens=1, ttfts=[0.1] * 6 + [last_s] * 3, duration_s=2.0)

    assert flags(line, output_len=1, point=OPEN | {"request_rate": 10.0}) == want


def test_without_a_cap_a_rate_is_the_limit_until_requests_queue():
    assert flags(point=OPEN) == ["rate_limited"]
    held = {"decode_lines": 10, "queued_share": 0.2, "queued_max": 3}
    assert flags(point=OPEN, view=held) == ["queue_limited"]


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (ClientUse(1.65, 0.0, 2), "the load client used 1.65 of 2 CPUs"),
        (ClientUse(0.1, 0.1, 2), "the load client waited 10 % of the time for a CPU"),
    ],
)
def test_a_client_without_a_free_cpu_is_the_limit(use, text):
    assert flags(client=use) == ["client_limited"]
    assert why(client=use) == text
    assert flags(client=ClientUse(0.1, 0.01, 2)) == []


def test_a_client_of_one_thread_is_the_limit_long_before_its_core_is_full():
    """It took 0.16 of a core where its times were right, 0.48 where they were not."""
    assert flags(client=ClientUse(0.16, 0.0, 1, one_thread=True)) == []
    assert why(client=ClientUse(0.48, 0.0, 1, one_thread=True)) == (
        "the load client used 0.48 of the one CPU that it can use"
    )


@pytest.mark.parametrize(
    ("step_ms", "want"),
    [(2.3, []), (2.31, ["client_limited"]), (1.74, []), (1.73, ["client_limited"]), (None, [])],
)
def test_times_between_tokens_are_those_of_the_server_s_steps(step_ms, want):
    assert flags(view=steady(step_ms)) == want  # 2 ms at the client


def test_each_side_of_the_gap_says_what_was_seen():
    assert why(view=steady(1.5)) == (
        "the median time between tokens is 2 ms at the client, a step of the server takes 1.5 ms"
    )
    assert why(view=steady(4)) == (
        "tokens came 2 ms apart at the client, less than a step of the server, 4 ms"
    )


def test_a_loop_that_reads_tokens_in_bursts_is_the_limit_whatever_their_mean():
    """Most tokens are there when it comes to look: 0.1 ms apart, and 2 ms in the mean."""
    line = client_line(8, tokens=101, itls=[[0.0001] * 98 + [0.0951] * 2] * 8, duration_s=1)
    loop = ClientUse(0.1, 0.0, 1, one_thread=True)

    assert flags(line, output_len=101, client=loop, view=steady(2.0)) == ["client_limited"]
    assert why(line, output_len=101, client=loop, view=steady(2.0)) == (
        "the median time between tokens is 0.1 ms at the client, a step of the server takes 2 ms: "
        "it read them in bursts"
    )
    # of a client of many threads it may be the server that sends in bursts
    assert flags(line, output_len=101, view=steady(2.0)) == []


def test_prefills_between_its_tokens_are_no_fault_of_the_client():
    """One of three times between tokens holds a prefill: 8 ms in the mean, 2 as usual."""
    line = client_line(8, itls=[[0.02, 0.002, 0.002]] * 8, ttft_s=0.01, duration_s=0.5)

    assert flags(line, view=steady(2.0)) == []


@pytest.mark.parametrize(
    ("duration_s", "want"), [(4.6, []), (4.61, ["client_limited"]), (8, ["client_limited"])]
)
def test_a_client_that_is_slow_to_send_the_next_request_is_the_limit(duration_s, want):
    """8 requests of 1 s, 2 at once, take 4 s where each free place is taken at once."""
    line = client_line(8, tokens=51, ttft_s=0.02, itl_s=0.0196, duration_s=duration_s)

    assert flags(line, output_len=51) == want
    # in the open loop, and where one failed, it is not known how long a place was empty
    assert "client_limited" not in flags(line, output_len=51, point=OPEN)
    failed = client_line(8, failed=1, tokens=51, ttft_s=0.02, itl_s=0.0196, duration_s=duration_s)
    assert "client_limited" not in flags(failed, output_len=51)


def test_empty_places_are_told_with_both_times_and_not_of_a_moment():
    line = client_line(8, tokens=51, ttft_s=0.02, itl_s=0.0196, duration_s=8)

    assert why(line, output_len=51) == (
        "the requests, 2 at once, account for 4 of 8 s: the client was slow to send the next ones"
    )
    assert flags(client_line(8, duration_s=0.56)) == []  # of 0.064 s; half a second is allowed
    assert flags(client_line(8, duration_s=0.57)) == ["client_limited"]


def waves(concurrency, *, input_len=1024, tokens=128, chunk=8192, tok_s=20_000.0, step_s=0.02):
    """Four waves of a closed loop as SGLang schedules them: its batch lines, and a true client.

    All of a wave are prefilled, chunk by chunk, then decoded together; all end in one step, and
    the next wave comes. A line per prefill and per 40th decode step, rates as SGLang counts them.
    """
    t, lines, ttfts, itls, last, made, steps = 1.0, [], [], [], 0.0, 0, 0
    for _ in range(4):
        began, firsts = t, []
        while len(firsts) < concurrency:
            count = min(chunk // input_len, concurrency - len(firsts))
            new = count * input_len
            lines.append(
                BatchLine(t, "prefill", 0, len(firsts), 0, new_tokens=new, cached_tokens=0)
            )
            t += new / tok_s
            firsts += [t] * count
        decoding = t
        for _ in range(tokens - 1):
            t += step_s
            steps, made = steps + 1, made + concurrency
            if steps % 40 == 0:
                rate = made / (t - last)
                lines.append(BatchLine(t, "decode", 0, concurrency, 0, output_tok_s=rate))
                last, made = t, 0
        ttfts += [first - began for first in firsts]
        rest = [step_s] * (tokens - 2)
        itls += [[decoding + step_s - first, *rest] for first in firsts]
    n = 4 * concurrency
    line = client_line(
        n, tokens=tokens, input_len=input_len, duration_s=t - 1.0, ttfts=ttfts, itls=itls
    )
    return lines, line


@pytest.mark.parametrize("concurrency", [32, 64, 128])
def test_waves_with_long_prompts_do_not_make_a_true_client_the_limit(concurrency):
    """By hand, at 64: TPOT 31.3 ms at the client, with the prefill of the others; steps of 20."""
    lines, line = waves(concurrency)
    view = server_view(lines, 0.95 * concurrency)
    point = {"concurrency": concurrency, "input_len": 1024}

    assert view.steps.median_ms == pytest.approx(20.0)
    assert flags(line, view=view, output_len=128, point=point) == []


def test_a_slow_client_is_seen_in_waves_with_long_prompts():
    lines, line = waves(64)
    slow = {**line, "itls": [[1.2 * gap for gap in gaps] for gaps in line["itls"]]}
    slow["duration"] *= 1.2
    point = {"concurrency": 64, "input_len": 1024}

    assert flags(slow, view=server_view(lines, 60.8), output_len=128, point=point) == [
        "client_limited"
    ]


def arrivals(requests, rate, tokens, *, step_s, per_request_s, prefill_s, seed):
    """An open loop as SGLang schedules it: its batch lines, and a true client.

    Whoever has come is prefilled before the next step; a step takes longer in a larger batch.
    """
    draw = random.Random(seed)
    come = list(accumulate((draw.expovariate(rate) for _ in range(requests - 1)), initial=0.0))
    t, last, made, steps, nexts = 0.0, -5.0, 0, 0, 0
    running, lines, firsts = [], [], [0.0] * requests
    times = [[] for _ in range(requests)]
    while nexts < requests or running:
        new = [i for i in range(nexts, requests) if come[i] <= t]
        if new:
            nexts += len(new)
            lines.append(BatchLine(t, "prefill", 0, len(running), 0, new_tokens=64 * len(new)))
            t += prefill_s * len(new)
            for i in new:
                firsts[i] = t - come[i]
                times[i].append(t)
            running += new
        elif running:
            t, steps, made = (
                t + step_s + per_request_s * len(running),
                steps + 1,
                made + len(running),
            )
            for i in running:
                times[i].append(t)
            running = [i for i in running if len(times[i]) < tokens]
            if steps % 40 == 0:
                rate_now = made / (t - last)
                lines.append(BatchLine(t, "decode", 0, len(running), 0, output_tok_s=rate_now))
                last, made = t, 0
        else:
            t = come[nexts]
    itls = [[b - a for a, b in pairwise(one)] for one in times]
    line = client_line(requests, tokens=tokens, input_len=64, duration_s=t, ttfts=firsts, itls=itls)
    return lines, line


@pytest.mark.parametrize(
    ("requests", "rate", "tokens", "costs", "seed"),
    [
        # few arrivals: the steps without a prefill are of smaller batches than the others
        (100, 1.0, 200, {"step_s": 0.003, "per_request_s": 0.001, "prefill_s": 0.004}, 1),
        # a ramp of small batches, then large ones without an arrival
        (64, 5.0, 800, {"step_s": 0.006, "per_request_s": 0.001, "prefill_s": 0.01}, 0),
    ],
)
def test_batches_that_grow_and_shrink_do_not_make_a_true_client_the_limit(
    requests, rate, tokens, costs, seed
):
    lines, line = arrivals(requests, rate, tokens, seed=seed, **costs)
    view = server_view(lines, None)
    told = {
        "view": view,
        "output_len": tokens,
        "point": OPEN | {"request_rate": rate, "input_len": 64},
    }

    assert view.steps is not None
    assert "client_limited" not in flags(line, **told)
    for factor in (1.5, 0.6):  # what no mixture of the server's steps can make
        other = {**line, "itls": [[factor * gap for gap in gaps] for gaps in line["itls"]]}
        assert "client_limited" in flags(other, **told)


def test_a_queue_says_what_the_pool_holds():
    view = {"decode_lines": 9, "queued_share": 0.5, "queued_max": 6, "running_max": 2}
    found = evidence(client_line(8), view=view, pool={"max_total_num_tokens": 4096})

    (one,) = findings(found, LIMITS)
    assert one.flag == "queue_limited"
    assert one.why == (
        "up to 6 of 2 requests waited for a place, 2 ran at the most; its KV pool holds 4096 tokens"
    )


def test_a_moment_in_the_queue_is_no_limit():
    assert flags(view={"decode_lines": 20, "queued_share": 0.05, "queued_max": 6}) == []


def test_a_retraction_is_a_full_pool():
    assert why(view={"retracted": 37}) == (
        "37 running requests were retracted, the KV pool was full"
    )


@pytest.mark.parametrize(("cap", "want"), [(1, ["queue_limited"]), (2, [])])
def test_a_server_that_logs_too_little_is_judged_by_its_own_cap(cap, want):
    assert flags(pool={"max_running_requests": cap}) == want
    assert flags(pool={"max_running_requests": cap}, view={"decode_lines": 9}) == []


@pytest.mark.parametrize(
    ("info", "want"),
    [
        # plain data parallelism: each of 8 ranks runs 16
        ({"max_running_requests": 16, "dp_size": 8}, []),
        # DP attention: 16 in all
        (
            {"max_running_requests": 16, "dp_size": 8, "enable_dp_attention": True},
            ["queue_limited"],
        ),
        # what a rank says of itself counts more, also where no flag was given
        (
            {
                "max_running_requests": 64,
                "effective_max_running_requests_per_dp": 7,
                "dp_size": 8,
            },
            ["queue_limited"],
        ),
        (
            {
                "max_running_requests": None,
                "effective_max_running_requests_per_dp": 8,
                "dp_size": 8,
            },
            [],
        ),
        ({"max_running_requests": None, "dp_size": 8}, []),
    ],
)
def test_the_cap_is_of_all_data_parallel_ranks_together(info, want):
    assert flags(client_line(64), point={"concurrency": 64}, pool=info) == want
