from itertools import combinations

import numpy as np
import pytest

from sgmatrix.analysis.ab.family import Share, shares


def pairs(found):
    return [(pytest.approx(one.p_adjusted), pytest.approx(one.weight)) for one in found]


def test_a_rejected_primary_leaves_holm_at_the_whole_level_by_hand():
    found = shares([0.001, 0.01, 0.02, 0.04], 0, 0.05)

    # 0.001 / 0.95; then Holm: 3 x 0.01, 2 x 0.02, 1 x 0.04, never falling.
    assert [(one.p_adjusted, one.weight) for one in found] == [
        (pytest.approx(0.0010526, abs=1e-7), 0.95),
        (pytest.approx(0.03), pytest.approx(1 / 3)),
        (pytest.approx(0.04), 0.5),
        (pytest.approx(0.04), 1.0),
    ]


def test_a_primary_that_is_not_rejected_leaves_the_others_five_percent_of_the_level_by_hand():
    found = shares([0.5, 0.0001, 0.02], 0, 0.05)

    # Weights 0.95, 0.025, 0.025: 0.0001 / 0.025. Then 0.95, 0.05: 0.02 / 0.05. Then 0.5 alone.
    assert pairs([Share(0.5, 0.95), Share(0.004, 0.025), Share(0.4, 0.05)]) == [
        (one.p_adjusted, one.weight) for one in found
    ]


def test_others_that_are_all_rejected_leave_the_primary_the_whole_level():
    primary, _ = shares([0.0499, 0.0001], 0, 0.05)

    assert (primary.p_adjusted, primary.weight) == (pytest.approx(0.0499), 1.0)


def test_a_single_load_point_needs_no_correction():
    assert shares([0.03], 0, 0.05) == [Share(0.03, 1.0)]


def test_who_has_no_p_takes_no_part_but_a_primary_keeps_its_weight():
    none, other, missing = shares([None, 0.001, None], 0, 0.05)

    assert none is missing is None
    assert other.p_adjusted == pytest.approx(0.02)  # 0.001 / 0.05


def closed_test(p, primary):
    """Every intersection by weighted Bonferroni, without the shortcut."""
    adjusted = [0.0] * len(p)
    for size in range(1, len(p) + 1):
        for chosen in combinations(range(len(p)), size):
            others = [i for i in chosen if i != primary]
            weight = {i: (0.05 if primary in chosen else 1.0) / len(others) for i in others}
            if primary in chosen:
                weight[primary] = 0.95 if others else 1.0
            value = min(p[i] / weight[i] for i in chosen)
            for i in chosen:
                adjusted[i] = max(adjusted[i], min(1.0, value))
    return adjusted


def test_the_shortcut_is_the_closed_test():
    rng = np.random.default_rng(3)
    for _ in range(200):
        p = (rng.random(5) ** 4).tolist()
        found = shares(p, 2, 0.05)

        assert [one.p_adjusted for one in found] == pytest.approx(closed_test(p, 2))
        for value, one in zip(p, found, strict=True):
            assert (one.p_adjusted <= 0.05) == (value <= 0.05 * one.weight)
