"""What the comparison promises, on simulated launches through the code that users run."""

import pytest

from ab_worlds import LOADS, PRIMARY, World, comparisons
from sgmatrix.analysis.ab.compare import conclude
from sgmatrix.analysis.ab.inputs import Rules
from sgmatrix.analysis.ab.judge import Verdict

RUNS = 2000
SEED = 20261130
CLAIMS = {Verdict.BETTER, Verdict.WORSE}
WORLDS = {
    "normal": World(),
    "heavy tails": World(tails="heavy"),
    "drift": World(drift=0.5),
    "failed launches": World(lost=0.1),
}


def rules(launches_min, budget, bound_pct=2.0):
    return Rules(PRIMARY, "output_tok_s", bound_pct, launches_min, budget)


def concluded(plan, effects, world, bound_pct=2.0, runs=RUNS):
    given = rules(*plan, bound_pct)
    for series in comparisons(runs, plan[1], effects, world, SEED):
        yield {one.load_id: one for one in conclude(series, given).results}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("plan", [(3, 3), (5, 5), (3, 5)])
def test_without_any_difference_at_most_one_comparison_in_twenty_claims_one(plan, world):
    false = sum(
        any(one.verdict in CLAIMS for one in results.values())
        for results in concluded(plan, {}, WORLDS[world])
    )

    assert 0 < false <= 0.05 * RUNS


@pytest.mark.parametrize("plan", [(5, 5), (3, 5)])
def test_others_stay_honest_when_the_primary_truly_differs(plan):
    others = [load for load in LOADS if load != PRIMARY]
    false = sum(
        any(results[load].verdict in CLAIMS for load in others)
        for results in concluded(plan, {PRIMARY: 10.0}, World())
    )

    assert 0 < false <= 0.05 * RUNS


@pytest.mark.parametrize("plan", [(5, 5), (3, 5)])
def test_three_times_the_noise_is_found_with_five_launches(plan):
    found = sum(
        results[PRIMARY].verdict is Verdict.BETTER
        for results in concluded(plan, {PRIMARY: 3.0}, World())
    )

    assert found >= 0.9 * RUNS


def test_a_difference_of_exactly_the_bound_is_rarely_called_none():
    # log(1.02) is 1.98 noises of 1 %.
    effects = dict.fromkeys(LOADS, 1.98026)
    false = sum(
        any(one.verdict is Verdict.NO_DIFFERENCE for one in results.values())
        for results in concluded((3, 5), effects, World())
    )

    assert false <= 0.05 * RUNS
