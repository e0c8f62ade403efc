"""Build the environments of this project, each from its lock file.

    python3 envs/install.py workflow      .venv/: Snakemake, MLflow and what the rules import
    python3 envs/install.py dev           the same, with the tools of `make test`
    python3 envs/install.py sglang-cpu    .engines/sglang-cpu/: the real SGLang, on a CPU

An environment that fits its locks is left alone, which takes a tenth of a second. One
that does not is built anew. `TORCH_INDEX=<URL>` names the package index for torch.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import setup_plugin
import setup_torch
from setup_checks import SetupError, choose_python, look, python_version, refusals
from setup_pip import Pip, Progress, clean_environment, read_pins

ENVS = Path(__file__).resolve().parent
ROOT = ENVS.parent
STAMP = ".sgmatrix-stamp.json"  # written last: the environment is whole
MARK = ".sgmatrix-building"  # written first: the folder is ours to delete
CUDA_DISK_FACTOR = 2.2  # measured: 2,730 MB of downloads became 5,833 MB on disk
SMOKE = """
import importlib.metadata, torch, torchvision
print("sglang", importlib.metadata.version("sglang"), "with torch", torch.__version__)
"""


@dataclass(frozen=True)
class Environment:
    """One thing that can be asked for."""

    name: str
    folder: Path
    locks: tuple[Path, ...]
    usual_s: int  # from nothing, 2 cores, wheels near by
    need_gb: float
    engine: bool = False


WORKFLOW_LOCK = ENVS / "workflow" / "requirements.lock"
DEV_LOCK = ENVS / "workflow" / "dev.lock"
ENGINE_LOCK = ENVS / "sglang-cpu" / "requirements.lock"
TORCH_LOCK = ENVS / "sglang-cpu" / "torch.lock"
ENVIRONMENTS = {
    env.name: env
    for env in (
        Environment("workflow", ROOT / ".venv", (WORKFLOW_LOCK,), 45, 2),
        Environment("dev", ROOT / ".venv", (WORKFLOW_LOCK, DEV_LOCK), 50, 2),
        Environment(
            "sglang-cpu",
            ROOT / ".engines" / "sglang-cpu",
            (ENGINE_LOCK, TORCH_LOCK),
            65,
            5,
            engine=True,
        ),
    )
}


def main(arguments: list[str] | None = None) -> int:
    """Build what is asked for; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", choices=ENVIRONMENTS, metavar="|".join(ENVIRONMENTS))
    names = parser.parse_args(arguments).names
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that pip is ended too
    for name in names:
        try:
            set_up(ENVIRONMENTS[name])
        except SetupError as error:
            if sys.stderr.isatty():
                print("\r\x1b[K", end="", file=sys.stderr)  # the progress line
            for line in str(error).split("\n"):
                print(line if line.startswith(" ") else f"{name}: {line}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print(f"\n{name}: interrupted; the next set-up starts it anew", file=sys.stderr)
            return 130
    return 0


def set_up(env: Environment) -> None:
    """Make the environment fit its locks."""
    wanted = {lock.relative_to(ENVS).as_posix(): sha256(lock) for lock in env.locks}
    if fits(env.folder, wanted):
        if env.engine:
            set_up_plugin(env)
        return
    python = choose_python(engine=env.engine)
    problems = refusals(look(ROOT, python), engine=env.engine, need_gb=env.need_gb)
    if problems:
        raise SetupError("\n".join(problems))
    progress = Progress(env.name)
    with alone(progress):
        if not fits(env.folder, wanted):  # else another set-up did it while this one waited
            build(env, python, progress)
            write_stamp(env.folder, wanted)
    if env.engine:
        set_up_plugin(env)


def set_up_plugin(env: Environment) -> None:
    """Make an engine's plug-in that of this project, as it is now."""
    if setup_plugin.has_plugin(env.folder):
        return
    progress = Progress(env.name)
    with alone(progress):
        if not setup_plugin.has_plugin(env.folder):
            setup_plugin.install_plugin(Pip(env.folder, progress), env.folder)
            progress.say(f"the plug-in {setup_plugin.SOURCE.name} is installed")


def build(env: Environment, python: str, progress: Progress) -> None:
    """Build the environment, or add what it lacks; on return it is whole but for its stamp."""
    base = {WORKFLOW_LOCK.relative_to(ENVS).as_posix(): sha256(WORKFLOW_LOCK)}
    added = env.name == "dev" and stamped_locks(env.folder) == base and fits(env.folder, base)
    locks = [DEV_LOCK] if added else [lock for lock in env.locks if lock != TORCH_LOCK]
    count = len(read_pins(*(env.locks if not added else locks)))
    usual = "usually 5 s" if added else f"usually {env.usual_s} s"
    progress.say(f"{count} packages, {usual}")

    (env.folder / STAMP).unlink(missing_ok=True)  # until it is whole again
    pip = Pip(env.folder, progress)
    if not added:
        clear(env.folder)
        make_venv(env.folder, python)
        if not hashes_hold(pip.python):
            progress.say("not CPython 3.11 on x86-64: the locked versions, but files unverified")
        install_locked(pip, ENVS / "pip.lock")
    if env.engine:
        check_torch(pip, env)
    for lock in locks:
        install_locked(pip, lock)
    if env.engine:
        install_torch(pip)
    done = check_engine(env.folder) if env.engine else f"{env.folder.name} is ready"
    progress.say(f"{done}, after {progress.elapsed()}")


def clear(folder: Path) -> None:
    """Make the folder anew, marked as ours to delete.

    Raises:
        SetupError: something is there that was not made here.
    """
    made_here = (folder / MARK).exists()
    if folder.is_symlink() or (folder.exists() and any(folder.iterdir()) and not made_here):
        raise SetupError(f"{folder} is there, and was not made by this set-up. Move it away")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()


def make_venv(folder: Path, python: str) -> None:
    """Make an empty virtual environment, with Python's own pip.

    Raises:
        SetupError: venv failed; the end of what it said.
    """
    command = [python, "-I", "-m", "venv", str(folder)]
    environment = clean_environment(os.environ)
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if made.returncode:
        raise SetupError(f"python -m venv failed\n  {(made.stdout + made.stderr).strip()[-500:]}")


def install_locked(pip: Pip, lock: Path) -> None:
    """Install one lock file, exactly, with its hashes where they hold.

    Raises:
        SetupError: pip failed, or put the packages elsewhere.
    """
    pins = read_pins(lock)
    if hashes_hold(pip.python):
        pip.install(["--no-deps", "--require-hashes", "-r", str(lock)], count=len(pins))
    else:
        with tempfile.TemporaryDirectory() as folder:
            plain = Path(folder, "requirements.txt")
            plain.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
            pip.install(["--no-deps", "-r", str(plain)], count=len(pins))
    if missing := pip.missing(pins):
        raise SetupError(
            f"pip left out {', '.join(missing[:5])}. See `pip config list` for target or prefix"
        )


def hashes_hold(python: Path) -> bool:
    """Whether pip takes the files that the hashes are of."""
    here = (python_version(python), platform.system(), platform.machine())
    return here == ((3, 11), "Linux", "x86_64")


def check_torch(pip: Pip, env: Environment) -> None:
    """Say what a CUDA build of torch costs, before anything large is downloaded."""
    torch = f"torch=={read_pins(TORCH_LOCK)['torch']}"
    found = setup_torch.ask(pip, torch)
    if not found.cuda:
        return
    size = setup_torch.download_bytes(found)
    pip.progress.say(setup_torch.notice(found, size))
    need_gb = env.need_gb + CUDA_DISK_FACTOR * (size or 0) / 10**9
    free_gb = shutil.disk_usage(ROOT).free / 10**9
    if free_gb < need_gb:
        raise SetupError(f"{free_gb:.1f} GB free, {need_gb:.1f} GB needed for the CUDA build")


def install_torch(pip: Pip) -> None:
    """Install torch with what it needs (all there already for a CPU build) and torchvision."""
    pins = read_pins(TORCH_LOCK)
    torch, torchvision = (f"{name}=={pins[name]}" for name in ("torch", "torchvision"))
    pip.install([*setup_torch.index_arguments(), torch])
    pip.install(["--no-deps", *setup_torch.index_arguments(), torchvision])
    if missing := pip.missing(pins):
        raise SetupError(f"pip left out {', '.join(missing)}")


def check_engine(folder: Path) -> str:
    """Return sglang's and torch's versions, as the engine's own python says them.

    Raises:
        SetupError: torch or torchvision does not import.
    """
    environment = clean_environment(os.environ)
    environment["PYTHONPATH"] = str(ENVS / "sglang-cpu" / "shim")
    with tempfile.TemporaryDirectory() as empty:  # no stray module shadows one of ours
        done = subprocess.run(
            [str(folder / "bin" / "python"), "-c", SMOKE],
            env=environment,
            cwd=empty,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        end = "\n".join(f"  {line}" for line in done.stderr.strip().splitlines()[-6:])
        raise SetupError(f"installed, but torch does not import\n{end}")
    return done.stdout.strip().splitlines()[-1]


def fits(folder: Path, wanted: dict[str, str]) -> bool:
    """Whether the environment is whole, fits the locks, lies where it was made, and runs."""
    if not wanted.items() <= stamped_locks(folder).items():
        return False
    return python_version(folder / "bin" / "python") == tuple(read_stamp(folder)["python"])


def stamped_locks(folder: Path) -> dict[str, str]:
    """Return lock -> sha256 of what the environment was made from; empty when not whole.

    An environment cannot be moved: its scripts name its folder.
    """
    stamp = read_stamp(folder)
    return stamp["locks"] if stamp.get("folder") == str(folder) else {}


def read_stamp(folder: Path) -> dict:
    """Return the stamp, or nothing when there is none that can be read."""
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def write_stamp(folder: Path, locks: dict[str, str]) -> None:
    """Say that the environment is whole; the last thing that a set-up does."""
    python = python_version(folder / "bin" / "python")
    stamp = {"folder": str(folder), "python": python, "locks": locks}
    neighbour = folder / f"{STAMP}.new"
    neighbour.write_text(json.dumps(stamp, indent=2) + "\n", encoding="utf-8")
    neighbour.replace(folder / STAMP)


def sha256(path: Path) -> str:
    """Return the file's hash."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextlib.contextmanager
def alone(progress: Progress) -> Iterator[None]:
    """Keep two set-ups of one project apart; the kernel lets go when the holders end.

    pip inherits the lock: when a set-up is killed, the next one waits for the pip that it left.
    """
    handle = os.open(ENVS, os.O_RDONLY)
    os.set_inheritable(handle, True)
    try:
        while not _locked(handle):
            progress.tick("waiting for another set-up of this project")
            time.sleep(0.5)
        yield
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks: go on without
    return True


if __name__ == "__main__":
    sys.exit(main())
