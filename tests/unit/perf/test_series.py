"""Which trials count, in which order they come, and what is repeated."""

from perf.lockstep.series import TRIES, measure, turned, why_refused
from sgmatrix.core.errors import SgmatrixError


def test_missed_ticks_and_foreign_work_refuse_a_trial_and_say_so(trial):
    assert why_refused(trial(foreign_cores=0.1), foreign_max=0.1) is None
    assert why_refused(trial(missed_ticks=2), 0.1) == "2 missed ticks, the longest took 3 ms"
    assert why_refused(trial(foreign_cores=0.11), 0.1) == "others used 0.11 cores"


def test_every_case_comes_first_in_turn():
    assert ["".join(turned("abc", n)) for n in range(4)] == ["abc", "bca", "cab", "abc"]


def test_a_refused_trial_is_repeated_and_counted_not_used(trial):
    made = iter([trial(missed_ticks=1), trial(cpu_s=1.0), trial(cpu_s=2.0)])
    told = []

    found = measure(["a"], 2, lambda _: next(made), foreign_max=0.1, tell=told.append)

    assert [one.use.cpu_s for one in found["a"].trials] == [1.0, 2.0]
    assert found["a"].refused == ["1 missed ticks, the longest took 3 ms"]
    assert len(told) == 3


def test_a_machine_that_is_never_quiet_ends_after_a_few_tries(trial):
    asked = []

    def run(case):
        asked.append(case)
        return trial(foreign_cores=1.5)

    found = measure(["a", "b"], 2, run, foreign_max=0.1, tell=lambda _: None)

    assert asked == [*"a" * TRIES, *"b" * TRIES, *"b" * TRIES, *"a" * TRIES]
    assert not found["a"].trials and len(found["a"].refused) == 2 * TRIES


def test_a_client_that_fails_is_a_refusal_with_its_reason():
    def run(case):
        raise SgmatrixError("client_crash", "exit code 1")

    found = measure(["a"], 1, run, foreign_max=0.1, tell=lambda _: None)

    assert found["a"].refused == ["client_crash: exit code 1"] * TRIES
