"""Why OEA helps or does not, in numbers worked out by hand."""

import pytest

from sgmatrix.analysis.experts import (
    BatchEffect,
    bandwidth_of,
    batch_effects,
    cause,
    quality_of,
)

MIB = 2**20


def probe(bandwidth=None, **batches):
    """A probe with that many distinct experts, by batch, in each of 4 layers."""
    return {
        "batches": {
            name.removeprefix("b"): {"activated_mean": mean, "layers": 4}
            for name, mean in batches.items()
        },
        "memory_bandwidth_bytes_s": bandwidth,
    }


def test_what_fewer_experts_save_is_their_bytes_over_the_bandwidth():
    # 10 experts of 2 MiB in 4 layers over 2 ranks: 40 MiB of each rank, at 4 GiB/s 9.765625 ms
    off, on = probe(b8=50.0), probe(4096 * MIB, b8=40.0)

    (effect,) = batch_effects(off, on, expert_bytes=2 * MIB, ranks=2)

    assert effect == BatchEffect(8, 50.0, 40.0, pytest.approx(0.2), pytest.approx(9.765625))


def test_the_bandwidth_of_the_other_arm_serves_where_one_has_none():
    (effect,) = batch_effects(probe(1e9, b8=50.0), probe(b8=40.0), expert_bytes=1e6, ranks=1)

    assert effect.predicted_ms == pytest.approx(40.0)  # 10 x 1e6 x 4 / 1e9 s


def test_batches_are_in_order_of_their_size_and_one_arm_alone_has_no_effect():
    effects = batch_effects(
        probe(1e9, b8=50.0, b16=60.0), probe(1e9, b2=3.0, b16=60.0), expert_bytes=1e6, ranks=1
    )

    assert effects == [
        BatchEffect(2, None, 3.0, None, None),
        BatchEffect(8, 50.0, None, None, None),
        BatchEffect(16, 60.0, 60.0, 0.0, 0.0),
    ]


@pytest.mark.parametrize(("bandwidth", "expert_bytes"), [(None, 1e6), (1e9, None)])
def test_without_bytes_or_bandwidth_only_the_drop_is_known(bandwidth, expert_bytes):
    (effect,) = batch_effects(
        probe(b8=50.0), probe(bandwidth, b8=40.0), expert_bytes=expert_bytes, ranks=1
    )

    assert (effect.drop_share, effect.predicted_ms) == (pytest.approx(0.2), None)


def test_a_probe_that_failed_or_is_not_there_has_no_batches():
    assert batch_effects({}, {}, expert_bytes=1e6, ranks=1) == []
    assert batch_effects({"status": "failed"}, {}, expert_bytes=1e6, ranks=1) == []


# --- the cause -----------------------------------------------------------------------------------


def effect(drop=0.2, saves_ms=1.0):
    return BatchEffect(8, 50.0, 40.0, drop, saves_ms)


@pytest.mark.parametrize(
    ("found", "verdict", "tpot_ms", "want"),
    [
        (effect(), "better", 10.0, "gain"),
        (effect(saves_ms=None), "better", 10.0, "gain"),  # fewer, of whatever size
        # it is better, but nobody saw fewer experts
        (None, "better", 10.0, "better_unexplained"),
        (effect(drop=None), "better", 10.0, "better_unexplained"),
        (effect(drop=0.029), "better", 10.0, "better_without"),
        (effect(drop=0.0, saves_ms=0.0), "better", 10.0, "better_without"),
        (effect(drop=-0.1, saves_ms=-1.0), "better", 10.0, "better_without"),
        # a metric that is not the time of a step
        (effect(), "better", None, "better_unexplained"),
        (effect(drop=0.029), "worse", 10.0, "no_fewer_experts"),
        (effect(drop=-0.5, saves_ms=-1.0), "no_difference", 10.0, "no_fewer_experts"),
        # 1 ms of 10 ms is ten times the bound of 1 %
        (effect(drop=0.031), "worse", 10.0, "router_overhead"),
        (effect(), "no_difference", 10.0, "router_overhead"),
        # 1 ms of 101 ms is below it, of 99 ms above it
        (effect(), "no_difference", 101.0, "not_expert_bound"),
        (effect(), "no_difference", 99.0, "router_overhead"),
        (effect(), "worse", 101.0, "not_expert_bound"),
        (effect(), "undecided", 10.0, "unknown"),
        (effect(), "no_verdict", 10.0, "unknown"),
        (None, "worse", 10.0, "unknown"),
        (effect(drop=None), "worse", 10.0, "unknown"),
        (effect(saves_ms=None), "worse", 10.0, "unknown"),
        (effect(), "worse", None, "unknown"),  # another metric than TPOT decides
    ],
)
def test_the_cause_follows_from_drop_saving_and_verdict(found, verdict, tpot_ms, want):
    assert cause(found, verdict=verdict, tpot_off_ms=tpot_ms, bound_percent=1.0) == want


def test_fewer_experts_that_save_less_than_a_larger_bound_are_no_overhead():
    why = cause(effect(), verdict="no_difference", tpot_off_ms=10.0, bound_percent=11.0)

    assert why == "not_expert_bound"


@pytest.mark.parametrize("verdict", ["better", "worse", "no_difference", "undecided"])
def test_of_arms_that_differ_in_more_than_oea_no_cause_is_told(verdict):
    why = cause(effect(), verdict=verdict, tpot_off_ms=10.0, bound_percent=1.0, confounded=True)

    assert why == "confounded"


# --- the bandwidth ---


def test_the_larger_bandwidth_is_that_of_the_device_whichever_arm_measured_it():
    slow, fast = probe(5e8, b8=50.0), probe(1e9, b8=40.0)

    (one,) = batch_effects(slow, fast, expert_bytes=1e6, ranks=1)
    (other,) = batch_effects(
        {**slow, **probe(1e9, b8=50.0)}, {**fast, **probe(5e8, b8=40.0)}, expert_bytes=1e6, ranks=1
    )

    assert one.predicted_ms == other.predicted_ms == pytest.approx(40.0)  # 10 x 1e6 x 4 / 1e9 s


@pytest.mark.parametrize(
    ("off", "on", "largest", "apart"),
    [
        (1e9, 8.1e8, 1e9, False),
        (1e9, 7.9e8, 1e9, True),
        (7.9e8, 1e9, 1e9, True),
        (None, 5e8, 5e8, False),
        (5e8, None, 5e8, False),
        (None, None, None, False),
    ],
)
def test_bandwidths_more_than_a_fifth_apart_are_told_apart(off, on, largest, apart):
    found = bandwidth_of(probe(off), probe(on))

    assert (found.largest, found.apart) == (largest, apart)


# --- the quality ---------------------------------------------------------------------------------


def told(*by_text, tokens=6):
    mean = sum(by_text) / len(by_text)
    quality = {"logprob_mean": mean, "logprob_by_text": list(by_text), "tokens": tokens}
    return {"quality": quality}


def test_quality_is_the_difference_of_the_means_with_its_error_over_the_texts():
    found = quality_of(told(-1.0, -2.0, -3.0), told(-1.1, -2.3, -3.2, tokens=9))

    # differences -0.1, -0.3, -0.2: mean -0.2, standard deviation 0.1, over the root of 3
    assert (found.off, found.on) == (-2.0, pytest.approx(-2.2))
    assert found.difference == pytest.approx(-0.2)
    assert found.standard_error == pytest.approx(0.1 / 3**0.5)
    assert (found.tokens, found.texts, found.alike, found.why_not) == (9, 3, False, None)


# log(1/32768), as a real engine with random weights answered it, over texts of several lengths
UNIFORM = (-10.3972063068804, -10.397207260583821, -10.397206624781541)


@pytest.mark.parametrize(
    ("off", "on", "want"),
    [
        (UNIFORM, UNIFORM, True),
        (UNIFORM, (*UNIFORM[:2], -10.3973), False),
        ((-1.0, -2.0), (-1.0, -2.0), False),  # both arms alike, but the model tells texts apart
        ((-1.0, -1.0), (-2.0, -2.0), False),
        ((-1.0,), (-1.0,), False),
    ],
)
def test_a_model_that_finds_every_token_as_likely_is_known_by_it(off, on, want):
    assert quality_of(told(*off), told(*on)).alike is want


def test_one_text_has_no_error():
    found = quality_of(told(-1.0), told(-1.5))

    assert (found.difference, found.standard_error) == (-0.5, None)


@pytest.mark.parametrize(
    ("off", "on", "why"),
    [
        ({}, told(-1.0), "OEA off: there is no probe"),
        (told(-1.0), {}, "OEA on: there is no probe"),
        ({"status": "failed", "reason": "server_crash"}, told(-1.0), "OEA off: there is no probe"),
        (
            told(-1.0),
            {"quality": {"not_measured": "probe.prompts is 0"}},
            "OEA on: probe.prompts is 0",
        ),
    ],
)
def test_quality_that_was_not_measured_has_no_number_and_says_why(off, on, why):
    found = quality_of(off, on)

    assert found.why_not == why
    assert (found.off, found.on, found.difference, found.standard_error) == (None,) * 4
    assert found.tokens == 0
