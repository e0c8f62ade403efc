"""Each validity flag: what raises it, what does not, and what it says."""

import pytest

from builders import client_line
from sgmatrix.load.client_use import ClientUse
from sgmatrix.load.evidence import Evidence, Surroundings
from sgmatrix.load.metrics import mean_concurrency
from sgmatrix.load.result import request_rows, summarise
from sgmatrix.load.serverview import ServerView
from sgmatrix.load.validity import findings, validity_columns
from sgmatrix.plan.load_parts import Validity

LIMITS = Validity().model_dump()
NOTHING = dict.fromkeys(ServerView.__dataclass_fields__) | {"decode_lines": 0}


def evidence(line, *, point=None, view=None, output_len=4, **changes):
    """A closed loop of 2 streams whose client wrote this line; all else is as it should be."""
    rows = request_rows(line, len(line["errors"]), output_len)
    asked = {"concurrency": 2, "request_rate": None, "dataset": "random-ids", "input_len": 16}
    metrics = summarise(rows, line["duration"])
    metrics["concurrency_mean"] = mean_concurrency(rows, line["duration"])
    given = {
        "point": asked | (point or {}),
        "rows": rows,
        "metrics": metrics,
        "server": ServerView(**NOTHING | (view or {})),
        "pool": {},
        "client": None,
        "surroundings": Surroundings(),
        "stream_errors": (),
        "cache_flushed": True,
        "cold": None,
    }
    return Evidence(**given | changes)


def flags(line=None, limits=None, **changes):
    found = findings(evidence(line or client_line(8), **changes), LIMITS | (limits or {}))
    return [one.flag for one in found]


def why(line=None, **changes):
    (found,) = findings(evidence(line or client_line(8), **changes), LIMITS)
    return found.why


def test_a_clean_point_has_no_flag():
    assert flags() == []
    assert validity_columns([]) == {"validity": "valid", "validity_detail": None}


# --- partial, lengths, latencies ------------------------------------------------------------------


def test_a_request_that_failed_makes_the_point_partial():
    assert flags(client_line(8, failed=1)) == ["partial"]
    assert why(client_line(8, failed=1)) == "1 of 8 requests failed"


@pytest.mark.parametrize(("share", "want"), [(0.75, []), (0.76, ["partial"])])
def test_how_many_may_fail_is_the_campaign_s_to_say(share, want):
    assert flags(client_line(8, failed=2), {"min_completed_share": share}) == want


@pytest.mark.parametrize(
    ("lengths", "want"),
    [
        ([100, 100], []),
        ([95, 95], []),  # 5 % below is within the tolerance
        ([94, 94], ["length_mismatch"]),
        ([105, 105], []),
        ([106, 106], ["length_mismatch"]),
        ([92, 98], ["length_mismatch"]),  # 5 % in the mean is not enough
        ([50, 150], ["length_mismatch"]),
        ([3, 3], ["length_mismatch"]),
    ],
)
def test_lengths_are_compared_one_by_one(lengths, want):
    line = client_line(2, tokens=100, output_lens=lengths)

    assert flags(line, output_len=100) == want


def test_only_the_lengths_of_ok_requests_count():
    assert flags(client_line(4, failed=2)) == ["partial"]


def test_prompts_of_another_length_than_was_asked_are_a_mismatch():
    assert why(client_line(8, input_len=8)) == "prompts had 8 tokens, 16 were asked for"
    assert flags(client_line(8, input_len=8), point={"dataset": "topical"}) == []


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"itls": [[], []]}, ["implausible"]),  # 4 tokens in no time after the first
        ({"itls": [[0.0] * 3, [0.002] * 3]}, ["implausible"]),
        ({"itls": [[-0.02], [0.002]]}, ["implausible"]),  # ended before it began
        ({"itls": [[-0.001], [0.002]]}, ["implausible"]),  # first token after the last
        ({"itls": [[0.006], [0.002] * 3]}, []),  # several tokens in one chunk
    ],
)
def test_latencies_that_cannot_be_are_implausible(changes, want):
    assert flags(client_line(2, **changes)) == want


def test_an_answer_of_one_token_is_plausible_without_a_time_per_token():
    assert flags(client_line(2, tokens=1), output_len=1) == []


@pytest.mark.parametrize(("duration_s", "want"), [(0.062, []), (0.06, ["implausible"])])
def test_more_requests_in_flight_than_were_allowed_cannot_be(duration_s, want):
    # 8 requests of 16 ms are 128 ms of work: at most 2.1 at once
    assert flags(client_line(8, duration_s=duration_s)) == want


@pytest.mark.parametrize(("peak", "want"), [(45.8, []), (45.7, ["implausible"])])
def test_more_tokens_than_the_server_s_steps_allow_cannot_be(peak, want):
    view = {"decode_lines": 4, "peak_output_tok_s": peak}  # 48 tok/s after the first ones

    assert flags(view=view) == want


# --- what limited the load ------------------------------------------------------------------------

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


@pytest.mark.parametrize(("own_ms", "want"), [(1.75, []), (1.7, ["client_limited"])])
def test_tokens_that_are_slower_at_the_client_than_at_the_server(own_ms, want):
    assert flags(view={"tpot_ms": own_ms}) == want  # 2 ms at the client


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


# --- cache, warm-up, surroundings -----------------------------------------------------------------


def test_a_cache_that_was_not_emptied_may_have_hit():
    assert flags(cache_flushed=False) == ["cache_hits"]


@pytest.mark.parametrize(
    ("dataset", "share", "want"),
    [
        ("random-ids", 0.01, []),
        ("random-ids", 0.011, ["cache_hits"]),
        ("topical", 0.2, ["cache_hits"]),
        ("shared-prefix", 0.8, []),  # that is what it is for
        ("custom", 0.3, []),
    ],
)
def test_prompts_from_the_cache_are_counted_by_the_server(dataset, share, want):
    assert flags(point={"dataset": dataset}, view={"cached_share": share}) == want


def test_a_server_that_was_not_warm_is_cold():
    assert why(cold="there was no warm-up") == "there was no warm-up"
    assert flags(cold="there was no warm-up") == ["cold"]


@pytest.mark.parametrize(
    ("around", "want"),
    [
        (Surroundings(foreign_share=0.1), []),
        (Surroundings(foreign_share=0.11), ["foreign_load"]),
        (Surroundings(foreign_pids=[41]), ["foreign_load"]),
        (Surroundings(throttled={"sw_thermal": 0.05, "sw_power_cap": 1.0}), []),
        (Surroundings(throttled={"sw_thermal": 0.06}), ["throttled"]),
        (Surroundings(throttled={"hw_power_brake": 0.5}), ["throttled"]),
        (Surroundings(coverage={"host": 0.5, "gpu 0": 1.0}), []),
        (Surroundings(coverage={"host": 1.0, "gpu 0": 0.4}), ["no_telemetry"]),
    ],
)
def test_what_telemetry_saw_of_the_machine(around, want):
    assert flags(surroundings=around) == want


def test_missing_samples_are_told_with_why_the_sampler_had_none():
    around = Surroundings(
        coverage={"host": 1.0, "gpu 0": 0.0},
        errors=("gpu 1: GpuIsLost", "gpu 0: NoPermission (Insufficient Permissions)"),
    )

    assert why(surroundings=around) == (
        "0 % of the samples of gpu 0: gpu 0: NoPermission (Insufficient Permissions)"
    )


def test_a_short_answer_beside_an_error_in_the_log_is_no_answer():
    line = client_line(4, output_lens=[4, 4, 4, 2])

    assert flags(line) == ["length_mismatch"]
    found = findings(evidence(line, stream_errors=("boom", "bang")), LIMITS)
    assert [one.flag for one in found] == ["length_mismatch", "implausible"]
    assert found[1].why == (
        "1 answers with HTTP 200 ended early, and the server logged 2 errors, the first: boom"
    )
    assert flags(stream_errors=("boom",)) == []  # of a request that the client saw fail, or none


def test_flags_add_up_in_the_order_of_the_list_and_each_says_why():
    line = client_line(4, failed=1, output_lens=[2, 2, 2, 0], itls=[[], [0.1], [0.1], []])
    found = findings(
        evidence(line, cache_flushed=False, cold="there was no warm-up"),
        LIMITS,
    )

    columns = validity_columns(found)
    assert columns["validity"] == "partial,cold,cache_hits,length_mismatch,implausible"
    assert columns["validity_detail"].split(" | ")[:2] == [
        "partial: 1 of 4 requests failed",
        "cold: there was no warm-up",
    ]
