"""Facts of a named SGLang installation, read without importing it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from sgmatrix.core.cache import cached
from sgmatrix.core.engine_python import ask_python
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import package_files
from sgmatrix.plan.parts import Engine


@dataclass(frozen=True)
class Installation:
    """What is installed: the package's version and the hash of everything beside it."""

    name: str
    python: str
    env: Mapping[str, str]
    version: str
    lock: str
    """sha256 over the names and versions of all distributions that the interpreter sees."""
    package: str
    """Folder of the package `sglang`."""
    contents: str
    """sha256 over the contents of the package's source files."""
    client_extension: str | None
    """Path of SGLang's Rust load client, a CPython extension; None where there is none."""
    plugins: Mapping[str, str]
    """Version of each installed distribution whose name begins with `sglang_`."""
    absent: str | None = None
    """The interpreter that was asked for and is not there; another answers for it."""


def installation(name: str, engine: Engine, project: Path) -> Installation:
    """Look at an installation, or where it is not there at the one that describes it.

    Raises:
        SgmatrixError: `engine_missing` when its interpreter or the package sglang is not there.
    """
    python = project / Path(engine.python).expanduser()  # an absolute path wins
    if engine.described_by is not None and not python.is_file():
        other = engine.model_copy(update={"python": engine.described_by, "described_by": None})
        return replace(installation(name, other, project), absent=engine.python)
    env = {key: project_paths(text, project) for key, text in engine.env.items()}
    fix = f"make setup, or correct engines.{name}.python"
    if not (python.is_file() and os.access(python, os.X_OK)):
        raise SgmatrixError(
            "engine_missing", f"engines.{name}.python = {engine.python} is no interpreter", fix=fix
        )
    search_path = _search_path(str(python), tuple(sorted(env.items())))
    distributions = sorted(
        {entry.name for folder in search_path for entry in Path(folder).glob("*.dist-info")}
    )
    for folder in map(Path, search_path):
        found = sorted(folder.glob("sglang-*.dist-info"))
        if (folder / "sglang" / "__init__.py").is_file() and found:
            extensions = sorted((folder / "sglang/srt/rust_extensions").glob("_bench.*.so"))
            return Installation(
                name=name,
                python=str(python),
                env=env,
                version=found[0].name.removeprefix("sglang-").removesuffix(".dist-info"),
                lock=hashlib.sha256("\n".join(distributions).encode()).hexdigest(),
                package=str(folder / "sglang"),
                contents=_contents(folder / "sglang"),
                plugins={
                    plugin: version
                    for plugin, sign, version in (
                        name.removesuffix(".dist-info").rpartition("-") for name in distributions
                    )
                    if sign and plugin.startswith("sglang_")
                },
                client_extension=str(extensions[0]) if extensions else None,
            )
    raise SgmatrixError("engine_missing", f"engines.{name}: no sglang for {engine.python}", fix=fix)


def project_paths(text: str, project: Path) -> str:
    """Return the text with `{project}` as the project's folder, so that files stay portable."""
    return text.replace("{project}", str(project))


@lru_cache
def _search_path(python: str, env: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return the folders that the interpreter imports from; it is asked, -S would hide them."""
    code = "import json, sys; print(json.dumps([p for p in sys.path if p]))"
    try:
        return tuple(ask_python(python, ["-c", code], dict(env)))
    except OSError as error:
        raise SgmatrixError(
            "engine_missing", f"{python} does not run: {error}", fix="make setup"
        ) from None


def fingerprint(package: Path) -> str:
    """Return a hash over names, sizes and times of the engine's files."""
    marks = [
        (file.relative_to(package).as_posix(), (stat := file.stat()).st_size, stat.st_mtime_ns)
        for file in package_files(package)
    ]
    return hashlib.sha256(repr((str(package), marks)).encode()).hexdigest()


def _contents(package: Path) -> str:
    """Return a hash over the contents of the engine's files, remembered by their times.

    An edit of an installation is another engine, whatever its version says.
    """

    def compute() -> str:
        whole = hashlib.sha256()
        for file in package_files(package):
            name = file.relative_to(package).as_posix()
            whole.update(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
        return whole.hexdigest()

    return str(cached("engine-contents", fingerprint(package), compute))


def engine_facts(engine: Installation) -> dict[str, Any]:
    """Return what a record says of an installation."""
    return {
        "version": engine.version,
        "lock": engine.lock,
        "files": engine.contents,
        "plugins": dict(engine.plugins),
    }
