"""Ctrl-Z under a shell with job control: the shell has the whole terminal until `fg`."""

import fcntl
import os
import pty
import shlex
import struct
import termios

import pytest

from lab import Lab
from screen_model import Terminal

pytestmark = pytest.mark.workflow


def test_ctrl_z_gives_the_whole_terminal_to_the_shell(lab: Lab) -> None:
    lab.campaign("{standin_tpot_ms: [3]}", concurrency="[1]")
    command = shlex.join(lab.command("--configfile", lab.folder / "campaign.yaml"))
    script = lab.folder / "shell.sh"
    script.write_text(f"set -m\n{command}\necho HELD\nread -r _\nfg\necho OVER\n")
    base = {k: v for k, v in lab.environment().items() if k not in ("CI", "NO_COLOR")}
    pid, descriptor = pty.fork()
    if pid == 0:
        os.execvpe("bash", ["bash", str(script)], base | {"TERM": "xterm"})
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    terminal, held, steps = Terminal(100, 30), [], {"warms up": b"\x1a", "HELD": b"\n"}
    while True:
        try:
            data = os.read(descriptor, 65536)
        except OSError:  # the last program of the terminal has ended
            break
        terminal.feed(data.decode(errors="replace"))
        for seen in [one for one in steps if one in terminal.text][:1]:
            if seen == "HELD":
                held = [terminal.region, "launches 0/1" in terminal.text]
            os.write(descriptor, steps.pop(seen))
    os.close(descriptor)
    os.waitpid(pid, 0)

    assert held == [(0, 29), False]
    assert "standin-tpot-ms-3: done" in terminal.text and "OVER" in terminal.text
    assert terminal.region == (0, 29)
