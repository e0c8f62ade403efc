"""Install this project's plug-in into an engine, again whenever its sources have changed."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

from setup_pip import Pip

SOURCE = Path(__file__).resolve().parents[1] / "plugins" / "sglang-oea"
STAMP = ".sgmatrix-plugin"
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "build", "*.egg-info", "tests", "device")


def plugin_hash(source: Path = SOURCE) -> str:
    """Return a hash over what is installed: the package and its project file."""
    whole = hashlib.sha256()
    for file in sorted([source / "pyproject.toml", *(source / "sglang_oea").glob("*.py")]):
        whole.update(f"{file.relative_to(source).as_posix()}\0".encode() + file.read_bytes())
    return whole.hexdigest()


def has_plugin(folder: Path) -> bool:
    """Tell whether an environment has the plug-in as it is now."""
    try:
        return (folder / STAMP).read_text(encoding="utf-8").strip() == plugin_hash()
    except OSError:
        return False


def install_plugin(pip: Pip, folder: Path) -> None:
    """Build and install the plug-in; nothing is fetched, nothing else is touched."""
    (folder / STAMP).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as made:
        copy = Path(made, "source")  # setuptools leaves its own files in the tree that it builds
        shutil.copytree(SOURCE, copy, ignore=_LEFT_OUT)
        pip.install(
            ["--no-deps", "--no-build-isolation", "--no-index", "--force-reinstall", str(copy)]
        )
    (folder / STAMP).write_text(plugin_hash() + "\n", encoding="utf-8")
