"""What is left on a terminal by the block and by others who write at the same time."""

import os
import pty
import tty

import pytest

from screen_model import Terminal
from sgmatrix.present.terminal.screen import Screen, is_live

BLOCK = ["first", "second", "third"]


@pytest.fixture
def lines():
    """A terminal of 20 by 8, with a screen on it."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    os.set_blocking(ours, False)
    model = Terminal(20, 8)

    class Lines:
        screen, size = Screen(theirs), (20, 8)
        terminal = model

        def others(self, text):
            os.write(theirs, text.encode())
            self.see()

        def draw(self, block=BLOCK):
            self.screen.draw(block, self.size)
            self.see()

        def see(self):
            model.feed(os.read(ours, 65536).decode())

    yield Lines()
    os.close(ours)
    os.close(theirs)


def test_nothing_that_others_write_is_eaten(lines):
    lines.others("before\r\n")
    lines.draw()
    for number in range(20):
        lines.others(f"line {number}\r\n")
        if number % 3 == 0:
            lines.draw()

    assert lines.terminal.rows[-3:] == BLOCK
    said = [row for row in lines.terminal.text.split("\n") if row.startswith(("line", "before"))]
    assert said == ["before", *(f"line {number}" for number in range(20))]


def test_a_line_begun_by_others_goes_on_where_it_was(lines):
    lines.others("\r\n" * 7 + "half a ")
    lines.draw()
    lines.others("line\r\n")

    assert lines.terminal.rows[3:] == ["half a line", "", *BLOCK]


def test_the_block_is_gone_at_the_end_and_text_goes_on(lines):
    lines.others("said\r\n")
    lines.draw()
    lines.screen.close()
    lines.others("after\r\n")
    lines.screen.draw(BLOCK, lines.size)  # a drawing thread that comes too late

    assert lines.terminal.rows == ["said", "after", *[""] * 6]
    assert lines.terminal.region == (0, 7)


@pytest.mark.parametrize("size", [(20, 6), (20, 12), (12, 8)])
def test_another_size_leaves_no_remnant(lines, size):
    lines.others("said\r\n" * 4)
    lines.draw()
    lines.terminal.resize(*size)
    lines.size = size
    lines.draw()
    lines.others("more\r\n")

    assert lines.terminal.rows[-3:] == BLOCK
    text = lines.terminal.text
    assert [text.count(word) for word in ("first", "third", "said", "more")] == [1, 1, 4, 1]


def test_without_room_the_block_is_taken_away(lines):
    lines.draw()
    lines.draw([])
    assert lines.terminal.rows == [""] * 8


@pytest.mark.parametrize(
    ("environment", "want"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "dumb"}, False),
        ({}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm", "CI": "true"}, False),
    ],
)
def test_plain_text_where_it_is_asked_for(environment, want):
    ours, theirs = pty.openpty()
    with open(theirs, "w") as out, open(ours):  # noqa: PTH123 - descriptors
        assert is_live(out, environment) is want


def test_a_file_is_no_terminal(tmp_path):
    with (tmp_path / "out").open("w") as out:
        assert is_live(out, {"TERM": "xterm"}) is False


def test_a_terminal_that_is_gone_stops_nobody(tmp_path):
    read, write = os.pipe()
    os.close(read)
    screen = Screen(write)
    assert screen.size() == (0, 0)
    screen.draw(BLOCK, (20, 8))
    screen.close()
    os.close(write)
