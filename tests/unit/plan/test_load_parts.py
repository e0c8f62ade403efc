"""What a campaign may say of its load, and what it may not."""

import pytest
from pydantic import ValidationError

from sgmatrix.plan.load_parts import Load, Slo

LENGTHS = {"input_len": 16, "output_len": 8}


def refused(**load):
    with pytest.raises(ValidationError) as caught:
        Load(**LENGTHS | load)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["auto", "rust", "python"])
def test_the_client_may_be_given_in_short(kind):
    short = Load(**LENGTHS, concurrency=[1], client=kind)

    assert short.client.kind == kind
    assert short == Load(**LENGTHS, concurrency=[1], client={"kind": kind})


def test_another_client_is_refused():
    assert "'auto', 'rust' or 'python'" in refused(concurrency=[1], client="vllm")


@pytest.mark.parametrize(
    ("load", "why"),
    [
        ({}, "give concurrency (closed loop) or request_rate (open loop), or both"),
        ({"concurrency": [1], "max_concurrency": 4}, "max_concurrency and burstiness are of the"),
        ({"concurrency": [1], "burstiness": 2.0}, "max_concurrency and burstiness are of the"),
        ({"concurrency": [1], "dataset": "custom"}, "dataset custom needs path"),
        ({"concurrency": [1], "path": "x.jsonl"}, "no other dataset has one"),
        ({"concurrency": [1], "dataset": "shared-prefix"}, "needs shared_prefix"),
        (
            {
                "concurrency": [1],
                "dataset": "shared-prefix",
                "shared_prefix": {"prefix_len": 16},
            },
            "prefix_len must be less than input_len",
        ),
        ({"concurrency": [1], "dataset": "topical", "output_len": 3}, "output_len is at least 4"),
        ({"concurrency": [2, 2]}, "a concurrency stands twice"),
        ({"request_rate": [1.0, 1.0]}, "a request rate stands twice"),
        ({"request_rate": [0.0]}, "greater than or equal to 0.001"),
        ({"concurrency": [True]}, "valid integer"),
    ],
)
def test_what_is_no_load_says_why(load, why):
    assert why in refused(**load)


def test_load_points_are_measured_from_the_lowest_up():
    load = Load(**LENGTHS, concurrency=[8, 1], request_rate=[2.0, 0.5])

    assert (load.concurrency, load.request_rate) == ([1, 8], [0.5, 2.0])


def test_an_objective_says_something():
    with pytest.raises(ValidationError, match="give at least one of ttft_ms, tpot_ms and e2e_ms"):
        Slo()
