"""The report of the bench: figures, and whether the goals are reached."""

import pytest

from perf.lockstep.series import Series
from perf.lockstep.tables import (
    BASE_STREAMS,
    accuracy_table,
    cpu_us_per_token,
    figure,
    sharing_table,
    verdicts,
)


@pytest.fixture
def found(trial):
    """Ours and another client: 10 and 30 microseconds a token over a start of 0.1 s and 5 s."""

    def found(errors=(8.0, 0.1, -5.0), ours_us=10):
        cpu_s = ours_us * 1e-6 * (1024 - BASE_STREAMS) * 32
        return {
            ("ours", BASE_STREAMS): Series([trial("ours")]),
            ("other", BASE_STREAMS): Series([trial("other", cpu_s=5.0)]),
            ("ours", 1024): Series([trial("ours", 1024, cpu_s=0.1 + cpu_s, errors=errors)]),
            ("other", 1024): Series(
                [trial("other", 1024, cpu_s=5.0 + 30e-6 * (1024 - BASE_STREAMS) * 32)], ["why"]
            ),
        }

    return found


def test_a_figure_is_the_median_and_the_range():
    assert figure([3.0, 1.0, 2.26], 1) == "2.3 (1.0 to 3.0)"
    assert figure([0.5], 2, signed=True) == "+0.50"
    assert figure([], 2) == "not measured"


def test_the_start_of_a_client_is_no_part_of_its_cost_per_token(found):
    series = found()

    assert cpu_us_per_token(series["ours", 1024], series["ours", 8]) == [pytest.approx(10)]
    assert cpu_us_per_token(series["other", 1024], series["other", 8]) == [pytest.approx(30)]
    assert cpu_us_per_token(series["other", 1024], Series()) == []


@pytest.mark.parametrize(
    ("cpu_s", "starts_s"), [(4.9, [5.0]), (5.6, [5.0, 4.6, 5.3])], ids=["less", "within"]
)
def test_a_load_that_costs_less_than_the_start_varies_has_no_cost_per_token(trial, cpu_s, starts_s):
    found = {
        ("ours", BASE_STREAMS): Series([trial(cpu_s=start_s) for start_s in starts_s]),
        ("ours", 64): Series([trial("ours", 64, cpu_s=cpu_s)]),
    }

    assert cpu_us_per_token(found["ours", 64], found["ours", BASE_STREAMS]) == []
    assert accuracy_table(found).endswith("| less than its start varies |")


def test_the_table_has_a_row_per_client_and_streams_without_the_base_load(found):
    *_, other, ours = accuracy_table(found()).splitlines()

    assert other == ("| other | 1,024 | 1, 1 refused | +0.00 | +0.0 | +0.0 | 0.750 | 30.0 |")
    assert ours == "| ours | 1,024 | 1, 0 refused | +0.10 | -5.0 | +8.0 | 0.750 | 10.0 |"


def test_goals_that_are_all_reached(found):
    assert verdicts(found(), "ours", "other", 1024) == [
        (True, "mean TPOT error, %: +0.10, within 0.2"),
        (True, "p99 ITL error, ms: -5.00, within 10"),
        (True, "mean TTFT error, ms: +8.00, within 15"),
        (True, "CPU per token: 0.33 of other's, 0.5"),
    ]


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"errors": (8.0, -0.21, 5.0)}, 0),
        ({"errors": (8.0, 0.1, -10.1)}, 1),
        ({"errors": (15.1, 0.1, 5.0)}, 2),
        ({"ours_us": 16}, 3),
    ],
)
def test_a_goal_that_is_missed(found, wrong, place):
    reached = [one for one, _ in verdicts(found(**wrong), "ours", "other", 1024)]

    assert reached == [index != place for index in range(4)]


def test_what_was_not_measured_reaches_no_goal(found):
    said = verdicts(found() | {("ours", 1024): Series([], ["why"])}, "ours", "other", 1024)

    assert [reached for reached, _ in said] == [False] * 4
    assert all(text.endswith("not measured") for _, text in said)


def test_the_second_table_sets_errors_beside_what_the_client_waited(trial):
    rows = sharing_table(
        {
            (256, 0.5): Series([trial(waited=0.25, errors=(1.0, 2.0, 3.0))]),
            (256, 0.0): Series([trial()]),
        }
    ).splitlines()

    assert [row.split(" | ")[1] for row in rows[2:]] == ["0%", "50%"]
    assert rows[3] == (
        "| 256 | 50% | 1, 0 refused | 0.250 | 0.50 | 0.500 | 20 | 2 | +2.00 | +3.0 | +1.0 |"
    )
