"""Where the time of the launches went."""

from builders import campaign
from finished import Finished
from sgmatrix.dataset.history import read_attempts
from sgmatrix.present.report.phases import phases


def test_the_phases_of_a_cell_are_means_over_its_launches(tmp_path):
    told = Finished(tmp_path, campaign(axes={"parallelism": ["tp1", "tp2"]}, launches=2))
    for launch in ("1", "2"):
        folder = told.measured("tp1", launch, rates={1: 64, 2: 100})
        for at in (1, 2):
            told.change_point(folder, at, client_wall_s=2.0 * int(launch))
    told.rejected("tp2", root="error: unrecognized arguments")
    found = phases(read_attempts(told.layout), ["tp1", "tp2"])

    one, other = found.cells
    assert (one.cell, one.launches) == ("tp1", 2)
    assert one.seconds == {"start_s": 2.5, "warmup_s": 4.0, "bench_s": 6.0, "teardown_s": 0.25}
    assert one.load_share == 6.0 / 12.75
    assert one.parts() == [
        ("start_s", 19.61),
        ("warmup_s", 31.37),
        ("bench_s", 47.06),
        ("teardown_s", 1.96),
    ]
    assert other.seconds["start_s"] is None and other.load_share is None
    assert found.text.startswith("0:25 of launches: start 19 %, warm-up 31 %, load 47 %")


def test_there_is_nothing_to_say_before_anything_ended(tmp_path):
    told = Finished(tmp_path, campaign())

    assert phases(read_attempts(told.layout), ["tp1"]) is None
