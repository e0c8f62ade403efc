"""Where files lie: the names of DESIGN section 8."""

from pathlib import Path

from sgmatrix.core.layout import Layout, launch_order

ROOT = Path("results/night")
HERE = Layout(ROOT)


def test_paths_are_those_of_the_design():
    assert HERE.plan == Path("results/night/plan.json")
    assert HERE.cell("tp8-ds8") == Path("results/night/cells/tp8-ds8")
    assert HERE.launch("tp8-ds8", "2") == Path("results/night/cells/tp8-ds8/launch-2")
    assert HERE.attempt("tp8", "1", 3) == Path("results/night/history/tp8/launch-1/3")
    assert HERE.datasets == Path("results/night/datasets")
    assert HERE.events == Path("results/night/logs/events.jsonl")


def test_attempts_are_counted_as_numbers_and_other_entries_are_passed_over(tmp_path):
    layout = Layout(tmp_path)
    for name in ("10", "9", "1", ".2.tmp", "notes", "3x"):
        (layout.attempts("tp1", "1") / name).mkdir(parents=True)

    assert layout.attempt_numbers("tp1", "1") == [1, 9, 10]


def test_a_launch_that_never_ran_has_no_attempts(tmp_path):
    assert Layout(tmp_path).attempt_numbers("tp1", "1") == []
    assert list(Layout(tmp_path).all_attempts()) == []


def test_all_attempts_come_in_a_fixed_order_with_their_folders(tmp_path):
    layout = Layout(tmp_path)
    made = [("tp2", "1", 1), ("tp1", "1-extra1", 1), ("tp1", "1", 10), ("tp1", "1", 2)]
    for cell, launch, attempt in made:
        layout.attempt(cell, launch, attempt).mkdir(parents=True)

    assert list(layout.all_attempts()) == [
        ("tp1", "1", 2, tmp_path / "history/tp1/launch-1/2"),
        ("tp1", "1", 10, tmp_path / "history/tp1/launch-1/10"),
        ("tp1", "1-extra1", 1, tmp_path / "history/tp1/launch-1-extra1/1"),
        ("tp2", "1", 1, tmp_path / "history/tp2/launch-1/1"),
    ]


def test_a_published_file_knows_its_campaign():
    layout = Layout(Path("results/night"))

    assert Layout.of(layout.launch("tp1", "1") / "server.json") == layout
    assert Layout.of(layout.launch("tp1", "1-extra1") / "points/c0001.json") == layout


def test_launches_are_in_the_order_of_their_numbers_with_their_extras_behind():
    names = ["10", "2", "1-extra10", "1-extra2", "1", "2-extra1"]

    assert sorted(names, key=launch_order) == ["1", "1-extra2", "1-extra10", "2", "2-extra1", "10"]
