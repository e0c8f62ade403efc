"""Run pip into a log, and say every few seconds how far it is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from setup_checks import SetupError

# How pip reaches its indexes is the caller's to say; where and what it installs is not.
PIP_SETTINGS_KEPT = {
    "PIP_CACHE_DIR",
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_CONFIG_FILE",
    "PIP_CONSTRAINT",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_KEYRING_PROVIDER",
    "PIP_NO_CACHE_DIR",
    "PIP_NO_INDEX",
    "PIP_PROXY",
    "PIP_RETRIES",
    "PIP_TIMEOUT",
    "PIP_TRUSTED_HOST",
}
MENDS = (
    ("DO NOT MATCH THE HASHES", "an index of yours serves a file that differs from the locked one"),
    ("No space left on device", "the disk is full; free some space"),
    ("Failed to establish a new connection", "no way to the package index; check network, proxy"),
    ("Name or service not known", "no way to the package index; check network, proxy"),
    ("name resolution", "no way to the package index; check network, proxy"),
    ("timed out", "the package index did not answer in time"),
    ("CERTIFICATE_VERIFY_FAILED", "the index's certificate is not trusted; set PIP_CERT"),
    ("No matching distribution found", "pip's index lacks a package; see `pip config list`"),
)


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what would leak other packages in, or these ones out."""
    kept = {
        key: value
        for key, value in environ.items()
        if not key.startswith(("PIP_", "PYTHON")) or key in PIP_SETTINGS_KEPT
    }
    return kept | {"PYTHONNOUSERSITE": "1", "PYTHONUNBUFFERED": "1"}


class Progress:
    """One line that says how far it is: rewritten on a terminal, every 5 s elsewhere."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.started = time.monotonic()
        self.said = self.started
        self.terminal = sys.stderr.isatty()

    def elapsed(self) -> str:
        """Return the time since the set-up of this environment began."""
        return f"{time.monotonic() - self.started:.0f} s"

    def say(self, text: str) -> None:
        """Write a line that stays."""
        erase = "\r\x1b[K" if self.terminal else ""
        print(f"{erase}{self.label} environment: {text}", file=sys.stderr, flush=True)
        self.said = time.monotonic()

    def tick(self, step: str) -> None:
        """Show the current step, when it is time to."""
        line = f"{self.label} environment: {self.elapsed()}, {step}"
        if self.terminal:
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
            print(f"\r{line[: columns - 1]}\x1b[K", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self.said >= 5:
            print(line, file=sys.stderr, flush=True)
            self.said = time.monotonic()


class Pip:
    """The pip of one environment."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        self.python = folder / "bin" / "python"
        self.folder = folder
        self.log = folder / "install.log"
        self.progress = progress

    def install(self, arguments: Sequence[str], *, count: int | None = None) -> None:
        """Run `pip install`, showing its step; `count` says how many packages to expect.

        Raises:
            SetupError: pip failed; the end of its log and a mend.
        """
        command = [str(self.python), "-m", "pip", "install", "--no-user", "--no-input"]
        command += ["--progress-bar", "off", "--disable-pip-version-check", *arguments]
        with self.log.open("ab") as log:
            start = log.tell()
            log.write(f"$ pip {' '.join(command[3:])}\n".encode())
            log.flush()
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=clean_environment(os.environ),
                close_fds=False,  # it holds the set-up's lock too
            )
            try:
                while not _ended(process, within=0.5):
                    there = {name for name, _ in self.installed()}
                    self.progress.tick(step(self._said_since(start), there, count))
            finally:
                stop(process)
        if process.returncode:
            raise SetupError(failure(self._said_since(start), self.log))

    def installed(self) -> set[tuple[str, str]]:
        """Return (name, version) of what is installed; a version without its local part."""
        found = self.folder.glob("lib/python3*/site-packages/*.dist-info")
        halves = (info.stem.rpartition("-") for info in found)
        return {(normal(name), version.partition("+")[0]) for name, _, version in halves}

    def missing(self, pins: Mapping[str, str]) -> list[str]:
        """Return which of the pins are not installed, or in another version."""
        there = self.installed()
        return [
            f"{name}=={version}" for name, version in pins.items() if (name, version) not in there
        ]

    def _said_since(self, start: int) -> str:
        with self.log.open("rb") as log:
            log.seek(start)
            return log.read().decode(errors="replace")


def step(said: str, there: Collection[str], count: int | None) -> str:
    """Return pip's current step, read from what it said so far.

    Args:
        said: pip's output of this run.
        there: normal names of the packages installed by now.
        count: how many packages pip will fetch, if known.
    """
    if installing := re.findall(r"^Installing collected packages: (.*)$", said, re.MULTILINE):
        names = [normal(name) for name in installing[-1].split(", ")]
        if len(names) == 1:
            return f"installing {names[0]}"
        return f"installed {sum(name in there for name in names)} of {len(names)} packages"
    now = re.findall(
        r"^ *(?:Collecting|Downloading) ([^\s(]+)(?:.*(\(.*[kMG]B\)))?", said, re.MULTILINE
    )
    if not now:
        return "asking the package index"
    of = f" {len(re.findall('^Collecting ', said, re.MULTILINE))} of {count}" if count else ""
    return f"fetching{of}: {' '.join(filter(None, now[-1]))}"


def failure(said: str, log: Path) -> str:
    """Return what to show when pip failed: the end of its output, and the mend."""
    lines = [line.rstrip() for line in said.splitlines() if line.strip()]
    mend = next((mend for sign, mend in MENDS if sign in said), "see the log")
    shown = "\n".join(f"  {line[:300]}" for line in lines[-12:])
    return f"pip failed: {mend}\n{shown}\n  log: {log}\n  then run the same command again"


def normal(name: str) -> str:
    """Return a package's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_pins(*locks: Path) -> dict[str, str]:
    """Return name -> version of lock files."""
    pins = {}
    for lock in locks:
        for line in lock.read_text(encoding="utf-8").splitlines():
            if words := line.partition("#")[0].split():
                name, _, version = words[0].partition("==")
                pins[normal(name)] = version
    return pins


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, and wait for it."""
    if process.poll() is None:
        process.terminate()
        if not _ended(process, within=10):
            process.kill()
            process.wait()


def _ended(process: subprocess.Popen[bytes], *, within: float) -> bool:
    try:
        process.wait(timeout=within)
    except subprocess.TimeoutExpired:
        return False
    return True
