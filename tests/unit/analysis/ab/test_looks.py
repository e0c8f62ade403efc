import pytest

from sgmatrix.analysis.ab.inputs import Rules
from sgmatrix.analysis.ab.looks import looks_of


def looks(low, budget):
    return [
        (one.number, one.rounds, pytest.approx(one.share))
        for one in looks_of(Rules("c1", "ttft_ms_mean", 1.0, low, budget))
    ]


@pytest.mark.parametrize(
    ("low", "budget", "want"),
    [
        (3, 5, [(1, 3, 0.025), (2, 4, 0.025), (3, 5, 0.85)]),
        (5, 5, [(1, 5, 0.9)]),
        (1, 4, [(1, 3, 0.025), (2, 4, 0.875)]),  # two pairs are never looked at
        (1, 3, [(1, 3, 0.9)]),
        (1, 2, []),
        (1, 1, []),
    ],
)
def test_looks_and_what_they_spend(low, budget, want):
    assert looks(low, budget) == want


@pytest.mark.parametrize("budget", [3, 4, 10, 21, 22, 60])
def test_all_looks_together_spend_nine_tenths_and_the_last_one_at_least_half_of_it(budget):
    found = looks_of(Rules("c1", "ttft_ms_mean", 1.0, 3, budget))

    assert sum(one.share for one in found) == pytest.approx(0.9)
    assert found[-1].share >= 0.45 - 1e-12
    assert found[-1].rounds == budget
