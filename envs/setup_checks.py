"""What must be true of a machine before an environment is built on it.

Each check is one line that names the thing and the mend: a set-up that stops after a
minute, with pip's words, costs more than all of these together.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ENGINE_PYTHON = (3, 11)  # the wheel of sglang 0.5.23 that the lock names is cp311
WORKFLOW_PYTHON = (3, 11)  # or newer: snakemake 9 and our own code
ENGINE_GLIBC = (2, 34)  # manylinux_2_34
GB = 10**9


class SetupError(Exception):
    """The set-up cannot go on; the text names the thing and the mend."""


@dataclass(frozen=True)
class Machine:
    """The facts that the checks look at."""

    python: tuple[int, int]
    python_path: str
    python_has_venv: bool
    has_lscpu: bool
    system: str  # as `uname -s`
    processor: str  # as `uname -m`
    glibc: tuple[int, int] | None  # None: another C library
    writable: bool
    free_bytes: int


def look(root: Path, python: str) -> Machine:
    """Return the facts of this machine, for environments under `root` made with `python`."""
    library, version = platform.libc_ver()
    major, _, minor = version.partition(".")
    return Machine(
        python=python_version(python) or sys.version_info[:2],
        python_path=python,
        python_has_venv=_succeeds([python, "-I", "-c", "import venv, ensurepip"]),
        has_lscpu=shutil.which("lscpu") is not None,
        system=platform.system(),
        processor=platform.machine(),
        glibc=(int(major), int(minor.partition(".")[0])) if library == "glibc" else None,
        writable=_writable(root),
        free_bytes=shutil.disk_usage(root).free,
    )


def refusals(machine: Machine, *, engine: bool, need_gb: float) -> list[str]:
    """Return why the environment cannot be built here; empty when it can."""
    have = ".".join(map(str, machine.python))
    found = []
    if engine and (machine.system, machine.processor) != ("Linux", "x86_64"):
        found.append(
            f"this machine is {machine.system} {machine.processor}; SGLang's wheel is for "
            "Linux x86_64. Measure there, and collect and report the results here"
        )
    elif engine and (machine.glibc is None or machine.glibc < ENGINE_GLIBC):
        seen = (
            "not glibc" if machine.glibc is None else "glibc " + ".".join(map(str, machine.glibc))
        )
        found.append(
            f"the C library is {seen}; SGLang's wheel needs glibc >= 2.34 "
            "(Debian 12, Ubuntu 22.04, RHEL 9 or newer)"
        )
    if engine and not fits_python(machine.python, engine=True):
        found.append(
            f"{machine.python_path} is Python {have}; SGLang's locked wheel needs Python 3.11 "
            "exactly. Install python3.11; if it is not on PATH: make setup PYTHON=<its path>"
        )
    if not engine and not fits_python(machine.python, engine=False):
        found.append(
            f"{machine.python_path} is Python {have}; the workflow needs Python 3.11 or newer. "
            "Install python3.11; if it is not on PATH: make setup PYTHON=<its path>"
        )
    if not machine.python_has_venv:
        found.append(
            f"{machine.python_path} lacks the modules venv or ensurepip. "
            "Debian and Ubuntu: apt install python3-venv"
        )
    if engine and not machine.has_lscpu:
        found.append(
            "the command lscpu is not on PATH; SGLang asks it for the cores. "
            "Debian and Ubuntu: apt install util-linux"
        )
    if not machine.writable:
        found.append("the project's folder is not writable. Copy it to one that is yours")
    if machine.free_bytes < need_gb * GB:
        found.append(
            f"{machine.free_bytes / GB:.1f} GB free on the project's disk; "
            f"this needs {need_gb:g} GB. Free some, or copy the project to another disk"
        )
    return found


def choose_python(*, engine: bool) -> str:
    """Return the interpreter to build with: the running one if it fits, else one on PATH."""
    # Not a virtual environment's own python: that one may be about to be rebuilt.
    running = getattr(sys, "_base_executable", None) or sys.executable
    if fits_python(sys.version_info[:2], engine=engine):
        return running
    for name in ("python3.11", "python3.12", "python3.13"):
        other = shutil.which(name)
        version = python_version(other) if other else None
        if other and version and fits_python(version, engine=engine):
            return other
    return running


def fits_python(version: tuple[int, int], *, engine: bool) -> bool:
    """Whether an environment can be made with this Python."""
    return version == ENGINE_PYTHON if engine else version >= WORKFLOW_PYTHON


def python_version(python: str | Path) -> tuple[int, int] | None:
    """Return (major, minor) as the interpreter itself says, or None when it does not run."""
    command = [str(python), "-I", "-c", "import sys; print(*sys.version_info[:2])"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        major, minor = done.stdout.split()
        return int(major), int(minor)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def _succeeds(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return os.access(folder, os.W_OK)
    except OSError:
        return False
