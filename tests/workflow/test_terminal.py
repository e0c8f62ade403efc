"""A real campaign on a real terminal, of 100 columns and 30 lines."""

import fcntl
import os
import pty
import re
import struct
import termios

import pytest

from lab import Lab, hears_hangups
from screen_model import Terminal

pytestmark = pytest.mark.workflow


def run_on_terminal(
    lab: Lab, *, interrupt_at: str = "", exit_code: int = 0, **environment: str
) -> tuple[str, Terminal, list[str]]:
    """Run the campaign; return all output, the terminal after it, and its screens on the way.

    Args:
        lab: where.
        interrupt_at: press Ctrl-C when this is seen.
        exit_code: that is to come.
        environment: beside that of the lab.
    """
    command = lab.command("--configfile", lab.folder / "campaign.yaml")
    base = {k: v for k, v in lab.environment().items() if k not in ("CI", "NO_COLOR")}
    pid, descriptor = pty.fork()
    if pid == 0:
        hears_hangups()
        os.execvpe(command[0], command, base | {"TERM": "xterm"} | environment)
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    terminal, text, screens = Terminal(100, 30), b"", []
    while True:
        try:
            data = os.read(descriptor, 65536)
        except OSError:  # the last program of the terminal has ended
            break
        text += data
        terminal.feed(data.decode(errors="replace"))
        screens.append("\n".join(terminal.rows))
        if interrupt_at and interrupt_at in screens[-1]:
            interrupt_at = ""
            os.write(descriptor, b"\x03")
    os.close(descriptor)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == exit_code, text.decode()
    return text.decode(), terminal, screens


def test_a_campaign_is_seen_in_one_view_while_it_runs(lab):
    lab.campaign("{standin_tpot_ms: [3, 4]}", hz=4)

    _, terminal, screens = run_on_terminal(lab)

    blocks = "\n".join(screens)
    cell = "standin-tpot-ms-3"
    assert re.search(r"small  launches 0/2  points 1/4 .*about \d+:\d\d left +\[#+\.+\]", blocks)
    assert re.search(rf"{cell} is measured at c0002-i8-o4-random-ids, 0:\d\d", blocks)
    assert re.search(rf"last  {cell}  c0001-i8-o4-random-ids  \d+ tok/s  TPOT \d\.\d\d ms", blocks)
    assert re.search(r"node  CPU \d+ %  engine \d\.\d GiB", blocks)
    assert re.search(rf"> {cell}  running +1/2 +\d+ +1 +\d\.\d\d", blocks)
    assert re.search(rf"  {cell}  ok +2/2 +\d+ +[12] +\d+\.\d\d", blocks)
    # at the end nothing of it is left, and all that was said is there
    end = terminal.text
    assert "launches 1/2" not in end
    assert terminal.region == (0, 29)
    for said in ("2 launches to do, 4 load points", f"{cell}: ready after", f"{cell}: done"):
        assert said in end
    assert re.search(rf"{cell} +ok +2/2", end)
    assert end.rstrip().split("\n")[-1].startswith("standin-tpot-ms-4")


def test_plain_lines_where_colours_are_not_wanted(lab):
    lab.campaign("{standin_tpot_ms: [3]}", concurrency="[1]")

    text, _, _ = run_on_terminal(lab, NO_COLOR="1")

    assert "standin-tpot-ms-3: done" in text
    assert "\x1b[1;" not in text


def test_ctrl_c_leaves_a_whole_terminal(lab):
    lab.campaign("{standin_tpot_ms: [3]}", concurrency="[1]")

    _, terminal, _ = run_on_terminal(lab, interrupt_at="warms up", exit_code=1)

    assert terminal.region == (0, 29)
    assert "launches 0/1" not in terminal.text
    assert "stopped: the campaign was stopped by signal 2" in terminal.text
