"""A machine that is lent for a time: a launch that would not end in it does not begin."""

import pytest

from lab import Lab

pytestmark = pytest.mark.workflow


def test_nothing_begins_that_would_not_end_and_the_next_invocation_goes_on(lab: Lab) -> None:
    lab.campaign("{parallelism: [tp1]}", waves=0, concurrency="[1]")
    stopped = lab.snakemake("measure", "--config", "time_limit_s=1")

    assert stopped.returncode == 1
    assert "the time limit is near: a further launch would not end in it" in stopped.stdout
    assert "the next snakemake goes on from here" in stopped.stdout
    assert not (lab.root / "history").exists()

    done = lab.snakemake("measure", "--config", "time_limit_s=600")
    assert done.returncode == 0, done.stdout
    assert lab.attempts() == {"tp1": ["1"]}
