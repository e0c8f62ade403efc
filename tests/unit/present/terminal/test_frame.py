"""The block, for what is known and the terminal's size."""

import pytest

from sgmatrix.present.terminal.frame import frame, middle
from sgmatrix.present.terminal.readings import GpuReading, Readings
from told_events import LOADS, event, point

NAME = "max-running-requests-{}"
BAR = f"[{'#' * 15}{'.' * 16}]"


@pytest.fixture
def busy(state):
    """The first cell is done, the second is measured at its first load since 12 s."""
    state.apply(event("starting", attempt=1))
    state.apply(point(LOADS[0], 100.0))
    state.apply(point(LOADS[1], 1900.0, 4.256, "cold"))
    state.apply(event("launch_done", status="ok", reason=None, time_s=1020.0))
    state.apply(event("starting", "tp2", attempt=1, time_s=1020.0))
    state.apply(event("point", "tp2", load=LOADS[0], time_s=1038.0))
    state.readings = Readings((), 0.434, 1945.6)
    return state


def test_the_whole_campaign_in_one_view(busy):
    assert frame(busy, 100, 30, 1050.0) == [
        f"made-up  launches 1/2  points 2/4  elapsed 0:50  about 0:01 left  {BAR}",
        f"tp2 is measured at {LOADS[0]}, 0:12",
        f"last  tp1  {LOADS[1]}  1,900 tok/s  TPOT 4.26 ms  cold",
        "node  CPU 43 %  engine 1.9 GiB",
        "  cell  status   points  best tok/s  at  TPOT ms  flags",
        "  tp1   ok          2/2         100   1     2.00",
        "> tp2   running     0/2",
    ]


def test_a_failed_cell_says_why(busy):
    busy.apply(event("launch_done", "tp2", status="failed", reason="oom_runtime"))
    assert frame(busy, 100, 30, 1050.0)[-1] == "! tp2   failed: oom_runtime     2/2"


@pytest.mark.parametrize("width", range(32, 130, 7))
@pytest.mark.parametrize("height", [9, 12, 24, 50])
def test_no_line_fills_the_width_and_others_keep_a_quarter(state_of, width, height):
    state = state_of(slots=29)
    state.plan.__dict__["campaign"] = "a-name-" * 12
    state.apply(event("starting", NAME.format(7), attempt=1))
    state.apply(point(LOADS[0], 1e7, 1234.5, "cold,foreign_load,throttled", cell=NAME.format(7)))
    state.readings = Readings(tuple(GpuReading(i, 700.0, 1.0, 80e3) for i in range(8)))

    lines = frame(state, width, height, 1e6)

    assert max(map(len, lines)) < width
    assert 4 <= len(lines) <= height - max(4, height // 4)
    assert any(line.startswith("> m") for line in lines) is (height > 10)
    assert ("about" in lines[0]) is (width > 40)
    # the block does not jump: as many lines as at the start, and as after an hour
    assert len(frame(state_of(slots=29), width, height, 1e3)) == len(lines)


def test_a_terminal_without_room_has_no_block(state):
    assert frame(state, 31, 30, 1000.0) == []
    assert frame(state, 100, 8, 1000.0) == []


def test_where_not_all_cells_fit_the_running_and_best_ones_are_shown(state_of):
    state = state_of(slots=8)
    for number in range(1, 7):
        state.apply(point(LOADS[0], 100.0 * number, cell=NAME.format(number)))
    state.apply(event("launch_done", NAME.format(1), status="failed", reason="oom_runtime"))
    state.apply(event("starting", NAME.format(8), attempt=1))

    table = frame(state, 100, 12, 1000.0)[4:]

    assert [line[:26].strip() for line in table[:-1]] == [
        "cell",
        f"> {NAME.format(8)}",
        NAME.format(6),
    ]
    assert table[-1] == "  and 6 more cells: 1 failed, 5 not run"


def test_gpus_are_summed_and_each_told_where_there_is_room(state):
    gpus = (GpuReading(0, 600.4, 0.9, 71680.0), GpuReading(1, 500.0, 0.7, 70656.0))
    state.readings = Readings(gpus)

    wide, narrow = frame(state, 100, 30, 1000.0)[3], frame(state, 60, 30, 1000.0)[3]

    assert wide == "2 GPUs 1,100 W 80 % 139 GiB  | 0: 600 W 90 % 70 GiB  | 1: 500 W 70 % 69 GiB"
    assert narrow == "2 GPUs 1,100 W 80 % 139 GiB"


def test_a_sum_with_a_part_missing_is_blank(state):
    state.readings = Readings((GpuReading(0, 600.0, 0.9, None), GpuReading(1, None, 0.7, None)))
    assert frame(state, 50, 30, 1000.0)[3] == "2 GPUs 80 %  | 0: 600 W 90 %  | 1: 70 %"


def test_long_names_are_cut_in_the_middle():
    assert middle("tp8-ds8-mf0.90-oea4", 12) == "tp8-d..-oea4"
    assert middle("tp8", 3) == "tp8"
    assert middle("tp8-ds8", 2) == ".."
