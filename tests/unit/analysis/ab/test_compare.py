import dataclasses
import math

import pytest

from ab_worlds import LOADS, METRIC, PRIMARY, World, comparisons, places
from sgmatrix.analysis.ab.compare import conclude, decision
from sgmatrix.analysis.ab.inputs import Rules, Series
from sgmatrix.analysis.ab.judge import Verdict

FAST = Rules("c1", "ttft_ms_mean", 1.0, 3, 3)
GROWING = Rules("c1", "ttft_ms_mean", 1.0, 3, 5)


def series(logs, load_id="c1", metric="ttft_ms_mean", aa=()):
    """Differences on the log scale, None for a failed launch of the variant."""
    variant = tuple(None if log is None else 100 * math.exp(log) for log in logs)
    return Series(load_id, metric, (100.0,) * len(logs), variant, aa)


def only(logs, rules=FAST, **more):
    (result,) = conclude([series(logs, **more)], rules).results
    return result


def test_three_pairs_by_hand():
    found = only([0.01, 0.02, 0.03])

    assert (found.pairs, found.left_out, found.primary) == (3, 0, True)
    assert found.baseline_mean == pytest.approx(100)
    assert found.variant_mean == pytest.approx(102.02013)  # 100 exp(0.02)
    assert found.effect_pct == pytest.approx(2.02013, abs=1e-5)
    assert found.p == pytest.approx(1 - math.sqrt(12 / 14))
    assert found.p_adjusted == pytest.approx(found.p / 0.9)
    # Level 0.05 x 0.9; two degrees of freedom: t^2 = 2 x 0.955^2 / (1 - 0.955^2), t = 4.55343;
    # times 0.01 / sqrt 3 = 0.026289 around 0.02.
    assert found.confidence == pytest.approx(0.955)
    assert found.interval_pct == pytest.approx((-0.62693, 4.73771), abs=1e-4)
    # With four pairs t(0.0225, 3) = 3.33 gives 0.0167, less than 0.02.
    assert found.text == "undecided (1 more launch per arm needed)"
    assert only([-0.01, -0.02, -0.03]).text == found.text


@pytest.mark.parametrize(
    ("metric", "sign", "want"),
    [
        ("ttft_ms_mean", -1, "better"),
        ("ttft_ms_mean", 1, "worse"),
        ("output_tok_s", 1, "better"),
        ("output_tok_s", -1, "worse"),
    ],
)
def test_better_follows_the_direction_of_the_metric(metric, sign, want):
    rules = dataclasses.replace(FAST, primary_metric=metric)

    assert only([sign * x for x in (0.10, 0.11, 0.12)], rules, metric=metric).text == want


def test_no_difference_by_hand():
    found = only([-0.001, 0.0, 0.001])

    assert found.text == "no difference larger than 1 %"
    assert found.p == pytest.approx(1)
    assert found.p_equivalence_adjusted == pytest.approx(0.001675 / 0.9, abs=2e-6)
    # Two one-sided tests at 0.045 are an interval of 91 %: t^2 = 2 x 0.91^2 / (1 - 0.91^2).
    assert found.confidence == pytest.approx(0.91)
    assert found.interval_pct[1] == pytest.approx(100 * math.expm1(3.10397 * 0.001 / 3**0.5), 1e-5)


def test_a_certain_but_small_difference_says_that_it_is_small():
    found = only([-0.0010, -0.0011, -0.0012])

    assert found.text == "better"
    assert found.note == "smaller than the 1 % that the campaign calls relevant"


@pytest.mark.parametrize("sign", [1, -1])
def test_a_difference_that_may_matter_is_not_called_small(sign):
    found = only([sign * log for log in (0.0099, 0.0100, 0.0101)])

    assert min(map(abs, found.interval_pct)) < 1 < max(map(abs, found.interval_pct))
    assert found.note == ""


@pytest.mark.parametrize(
    ("logs", "why"),
    [
        ([], "no launch of both arms"),
        ([None] * 3, "3 of 3 rounds have no value of both arms that may be compared"),
        ([None], "1 of 1 round has no value of both arms that may be compared"),
        ([0.5], "one launch per arm"),
        (
            [0.5, None, None],
            "one launch per arm: 2 of 3 rounds have no value of both arms that may be compared",
        ),
        (
            [0.5, 0.5, None],
            "two launches per arm: 1 of 3 rounds has no value of both arms that may be compared",
        ),
        ([0.5, 0.5], "two launches per arm"),
    ],
)
def test_fewer_than_three_pairs_have_no_verdict(logs, why):
    found = only(logs)

    assert found.text == f"no verdict ({why})"
    assert (found.p, found.interval_pct, found.more_launches) == (None, None, None)


def test_a_budget_of_one_launch_ends_without_a_verdict():
    found = conclude([series([0.5])], Rules("c1", "ttft_ms_mean", 1.0, 1, 1))

    assert (found.stop, found.look, found.looks, found.used) == (True, 0, 0, 1)
    assert found.results[0].effect_pct == pytest.approx(100 * math.expm1(0.5))


def test_before_the_minimum_there_is_no_verdict():
    rules = Rules("c1", "ttft_ms_mean", 1.0, 4, 5)
    found = conclude([series([0.10, 0.11, 0.12])], rules)

    assert not found.stop
    assert found.why == "the first look is after 4 launches per arm"
    assert (
        found.results[0].text
        == "no verdict (3 launches per arm, fewer than the campaign's minimum)"
    )


def test_left_out_pairs_are_counted_and_break_the_balance_of_the_order():
    found = only([0.10, None, 0.11, None, 0.12], Rules("c1", "ttft_ms_mean", 1.0, 5, 5))

    assert (found.pairs, found.left_out, found.text) == (3, 2, "worse")
    assert "drift does not cancel" in found.note


def test_further_launches_are_counted_for_a_last_look_not_for_the_early_one_that_asks():
    # Level 0.05 x 0.85 with four pairs: t(0.02125, 3) is between 3.18 and 3.49, times 0.01 / 2.
    assert only([0.01, 0.02, 0.03], GROWING).text == "undecided (1 more launch per arm needed)"


def test_more_launches_than_anyone_starts_are_not_counted():
    # At the first of two looks after 150, with a mean that 100 launches would have at the last.
    many = Rules("c1", "ttft_ms_mean", 1.0, 150, 151)

    assert only([0.30, -0.30, 0.001]).text == "undecided (more than 100 launches per arm needed)"
    assert only([0.37, -0.23] * 75, many).text == only([0.30, -0.30, 0.001]).text


@pytest.mark.parametrize(("rounds", "left"), [(4, 0.0), (3, 1 / 3)])
def test_a_linear_drift_cancels_over_even_rounds(rounds, left):
    slow = 100 * 1.01 ** places(rounds)  # 1 % more from launch to launch
    arms = slow.T.tolist()
    rules = Rules("c1", "ttft_ms_mean", 1.0, rounds, rounds)

    (found,) = conclude([Series("c1", "ttft_ms_mean", *map(tuple, arms))], rules).results

    assert found.effect_pct == pytest.approx(100 * (1.01**left - 1))


def test_equal_differences_are_suspicious():
    assert "every pair shows the same" in only([0.02, 0.02, 0.02]).note


def test_a_clear_effect_stops_at_the_first_look():
    found = decision([series([0.50, 0.51, 0.52])], GROWING, 3)

    assert (found.stop, found.look, found.used, found.planned) == (True, 1, 3, 5)
    assert found.why == "c1: worse at look 1"


def test_equality_stops_too():
    found = decision([series([-1e-4, 0.0, 1e-4])], GROWING, 3)

    assert (found.stop, found.why) == (True, "c1: no difference at look 1")


def test_an_undecided_comparison_goes_on_and_ends_with_its_budget():
    values = [series([0.01, 0.02, 0.03, -0.02, -0.03])]
    answers = [decision(values, GROWING, rounds) for rounds in range(7)]

    assert [one.stop for one in answers] == [False, False, False, False, False, True, True]
    assert answers[2].why == "the first look is after 3 launches per arm"
    assert answers[4].why == "c1 is not decided after 4 of 5 launches per arm"
    assert answers[5].why == "the budget of 5 launches per arm is used"
    assert answers[6] == answers[5]


def test_only_the_primary_stops_and_the_others_are_judged_then():
    clear = series([0.50, 0.51, 0.52, 0.5, 0.5], "c2")
    vague = series([0.01, 0.02, 0.03, -0.02, -0.03])

    assert not decision([vague, clear], GROWING, 4).stop


def test_later_rounds_cannot_undo_a_stop():
    same = ((100.0, 101.0), (100.0, 99.0), (100.0, 101.0))
    early = [series([0.50, 0.51, 0.52], aa=same)]
    late = [series([0.50, 0.51, 0.52, -3.0, -4.0], aa=(*same, (100.0, 300.0)))]

    assert decision(late, GROWING, 5) == decision(early, GROWING, 3)
    assert conclude(late, GROWING) == conclude(early, GROWING)


def test_an_answer_depends_on_the_finished_rounds_only():
    rules = Rules(PRIMARY, METRIC, 2.0, 3, 6)
    for drawn in comparisons(60, 6, {PRIMARY: 4.0}, World(lost=0.1), 5):
        for rounds in range(1, 7):
            cut = [
                dataclasses.replace(
                    one, baseline=one.baseline[:rounds], variant=one.variant[:rounds]
                )
                for one in drawn
            ]

            assert decision(drawn, rules, rounds) == decision(cut, rules, rounds)
            assert conclude(drawn, rules, rounds) == conclude(cut, rules)


@pytest.mark.parametrize("effect", [0.0, 2.0, 8.0])
def test_every_interval_agrees_with_its_verdict(effect):
    rules, seen = Rules(PRIMARY, METRIC, 2.0, 3, 5), set()
    for drawn in comparisons(150, 5, dict.fromkeys(LOADS, effect), World(), 11):
        for one in conclude(drawn, rules).results:
            low, high = one.interval_pct
            within = low > -2 and high < 2
            seen.add(one.verdict)
            if one.verdict in {Verdict.BETTER, Verdict.WORSE}:
                assert low > 0 or high < 0
                assert one.p_adjusted <= 0.05
            else:
                assert low <= 0 <= high or one.verdict is Verdict.NO_DIFFERENCE
                assert within == (one.verdict is Verdict.NO_DIFFERENCE)

    assert len(seen) > 1
