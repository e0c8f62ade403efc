"""The SGLang CPU engine with the plug-in sglang-oea beside it, for tests.

The plug-in is built and installed by pip into a folder of its own, so that its entry point is
what is tested and the installation of the engine stays as it is.
"""

import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
ENGINE = PROJECT / ".engines/sglang-cpu/bin/python"
SOURCE = PROJECT / "plugins/sglang-oea"
SHIM = PROJECT / "envs/sglang-cpu/shim"

# What the plug-in's tests need and the engine does not have: pure Python, from dev.lock.
RUNNER = (
    "pytest",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "hypothesis",
    "sortedcontainers",
)


def install_plugin(folder: Path) -> Path:
    """Install the plug-in into a folder below `folder` and return it."""
    source, site = folder / "source", folder / "site"
    # A copy: setuptools leaves its own files in the tree that it builds.
    shutil.copytree(
        SOURCE, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    )
    run = subprocess.run(
        [
            *(ENGINE, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"),
            *("--no-index", "--disable-pip-version-check", "--target", site, source),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    return site


def link_runner(folder: Path) -> Path:
    """Link pytest and what it needs, and nothing else of our environment, into a folder."""
    folder.mkdir()
    for name in RUNNER:
        distribution = metadata.distribution(name)
        for first in {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}:
            target = Path(str(distribution.locate_file(first)))
            if first != "__pycache__" and not (folder / first).exists():
                (folder / first).symlink_to(target)
    return folder


def engine_env(*path: Path, **more: str) -> dict[str, str]:
    """Return the environment of the CPU engine, with folders after the shim on its path."""
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR") if name in os.environ}
    return kept | {
        "PYTHONPATH": os.pathsep.join(map(str, (SHIM, *path))),
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SGLANG_USE_CPU_ENGINE": "1",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        **more,
    }
