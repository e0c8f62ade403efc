"""What unit tests of several layers use: how laws are tried, helper processes, launches."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from sgmatrix.core.layout import Layout
from sgmatrix.node import launch as launch_module
from sgmatrix.node import proc

PACKAGE_PARENT = Path(launch_module.__file__).parents[2]

# No deadline: how long an example takes on a busy machine is not what these tests are about.
settings.register_profile("unit", deadline=None, max_examples=60)
settings.load_profile("unit")


@pytest.fixture
def process():
    """Start helper processes with piped stdin and stdout; all of them are gone afterwards.

    Without arguments it is one that does nothing until its stdin is closed.
    """
    with contextlib.ExitStack() as stack:

        def start(*command, **options):
            helper = subprocess.Popen(
                command or ("cat",),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                **options,
            )
            stack.enter_context(helper)  # closes its pipes, and waits
            stack.callback(helper.kill)
            return helper

        yield start


@pytest.fixture
def python(process):
    """Start a helper process that runs Python code with the package on its path."""

    def start(code, *arguments):
        command = (sys.executable, "-S", "-c", code, *arguments)
        return process(*command, env={**os.environ, "PYTHONPATH": str(PACKAGE_PARENT)})

    return start


@pytest.fixture
def leases(tmp_path, monkeypatch):
    """Keep this test's leases apart from those of everything else on the machine."""
    folder = tmp_path / "leases"
    monkeypatch.setenv("SGMATRIX_LEASES", str(folder))
    return folder


@pytest.fixture
def own_temporary_folder(tmp_path, monkeypatch):
    """A folder for temporary files of this test alone, so that leftovers are seen."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def wardens(leases, own_temporary_folder, monkeypatch):
    """Wardens that `run_launch` started in this test; all are ended and collected afterwards."""
    monkeypatch.delenv(launch_module.OWNER_VARIABLE, raising=False)
    monkeypatch.delenv(launch_module.STOPPING_VARIABLE, raising=False)
    started = []
    start = launch_module.start_warden

    def keep(spec_path):
        started.append(start(spec_path))
        return started[-1]

    monkeypatch.setattr(launch_module, "start_warden", keep)
    yield started
    for warden in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(warden.pid, signal.SIGTERM)
        with warden:  # closes its pipe
            assert warden.wait(30) is not None
    assert not [pid for pid in proc.children(os.getpid()) if "sglang" in proc.command_of(pid)]


@pytest.fixture
def files():
    """The names of all files below a folder, sorted."""

    def files(folder):
        below = Layout(Path(folder)).root.rglob("*")
        return sorted(str(f.relative_to(folder)) for f in below if f.is_file())

    return files
