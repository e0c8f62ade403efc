"""Write the lock files: exact versions, each with the hash of the file that pip takes.

    .venv/bin/python envs/lock.py              keep the locked versions that still fit
    .venv/bin/python envs/lock.py --upgrade    take the newest that the *.in files allow

Run it with CPython 3.11 on Linux x86-64, for which the hashes hold. Only the main package
index is asked: an extra index or a folder of wheels on this machine may hold files that
were built differently, and their hash would fail everywhere else.

Not here  torch and torchvision: every index has its own build of them (torch.lock, by hand).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ENVS = Path(__file__).resolve().parent
HEADER = """\
# Made by envs/lock.py for CPython 3.11 on Linux x86-64; change {source} and run it again.
"""
CONDA_WORKFLOW = """\
# Made by envs/lock.py. For `snakemake --software-deployment-method conda`.
# The pins are copied in, since Snakemake moves this file before conda reads it.
channels: [conda-forge, nodefaults]
dependencies:
  - python=3.11
  - pip
  - pip:
"""
CONDA_ENGINE = """\
#!/usr/bin/env bash
# Made by envs/lock.py. Snakemake runs it in the environment that sglang-cpu.yaml made:
# conda itself cannot pass --no-deps to pip, and sglang's metadata asks for CUDA packages.
set -euo pipefail
python -m pip install --no-deps --require-hashes -r /dev/stdin <<'PINS'
{pins}
PINS
# A CPU build where pip's index has one; a CUDA build brings its libraries along.
python -m pip install {torch}
python -m pip install --no-deps {torchvision}
"""


@dataclass(frozen=True, order=True)
class Pin:
    """One locked package."""

    name: str
    version: str
    sha256: str

    @property
    def requirement(self) -> str:
        """The pin without its hash."""
        return f"{self.name}=={self.version}"

    @property
    def line(self) -> str:
        """The pin as a line of a lock file."""
        return f"{self.requirement} --hash=sha256:{self.sha256}"


def main() -> None:
    """Resolve each environment and write its files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upgrade", action="store_true", help="forget the versions locked now")
    upgrade = parser.parse_args().upgrade
    if sys.version_info[:2] != (3, 11) or platform.system() + platform.machine() != "Linuxx86_64":
        sys.exit("lock: the hashes are for CPython 3.11 on Linux x86-64; run it there")

    workflow, engine = ENVS / "workflow", ENVS / "sglang-cpu"
    wanted, tools = workflow / "requirements.in", workflow / "dev.in"
    kept = [] if upgrade else locked(workflow / "requirements.lock") + locked(workflow / "dev.lock")

    # Resolved together, so that the tools agree with the workflow; then told apart.
    everything = resolve([wanted, tools], constraints=kept)
    needed = resolve([wanted], constraints=[pin.requirement for pin in everything])
    write_lock(workflow / "requirements.lock", needed, source="requirements.in")
    write_lock(workflow / "dev.lock", set(everything) - set(needed), source="dev.in")
    lines = (f"      - {pin.line}\n" for pin in sorted(needed))
    (ENVS / "workflow.yaml").write_text(CONDA_WORKFLOW + "".join(lines))

    pins = resolve([engine / "requirements.in"], dependencies=False)
    write_lock(engine / "requirements.lock", pins, source="requirements.in")
    torch, torchvision = locked(engine / "torch.lock")
    script = CONDA_ENGINE.format(
        pins="\n".join(pin.line for pin in sorted(pins)), torch=torch, torchvision=torchvision
    )
    (ENVS / "sglang-cpu.post-deploy.sh").write_text(script)
    write_lock(ENVS / "pip.lock", resolve([ENVS / "pip.in"]), source="pip.in")


def locked(path: Path) -> list[str]:
    """Return the `name==version` of each line; none when there is no such file yet."""
    if not path.exists():
        return []
    lines = (line.partition("#")[0].split() for line in path.read_text().splitlines())
    return [words[0] for words in lines if words]


def resolve(
    files: list[Path], *, constraints: list[str] | None = None, dependencies: bool = True
) -> list[Pin]:
    """Return what pip would install, without installing or (mostly) downloading it."""
    with tempfile.TemporaryDirectory() as folder:
        report, limits = Path(folder, "report.json"), Path(folder, "constraints.txt")
        limits.write_text("\n".join(constraints or []))
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"]
        command += ["--quiet", "--use-feature=fast-deps", "--report", str(report)]
        command += ["--constraint", str(limits), *(["--no-deps"] if not dependencies else [])]
        for file in files:
            command += ["--requirement", str(file)]
        dropped = {"PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONSTRAINT", "PYTHONPATH"}
        environment = {key: value for key, value in os.environ.items() if key not in dropped}
        environment["PIP_CONFIG_FILE"] = os.devnull
        if subprocess.run(command, env=environment, check=False).returncode:
            sys.exit(f"lock: pip found no set of versions for {', '.join(f.name for f in files)}")
        return [pin_of(item) for item in json.loads(report.read_text())["install"]]


def pin_of(item: dict) -> Pin:
    """Return the pin of one entry of pip's installation report."""
    name = item["metadata"]["name"].lower().replace("_", "-").replace(".", "-")
    source = item["download_info"]
    if not source["url"].startswith("https://"):
        sys.exit(f"lock: {name} comes from {source['url']}, not from the main package index")
    return Pin(name, item["metadata"]["version"], source["archive_info"]["hashes"]["sha256"])


def write_lock(path: Path, pins: list[Pin] | set[Pin], *, source: str) -> None:
    """Write one lock file, sorted by name."""
    lines = [pin.line + "\n" for pin in sorted(pins)]
    path.write_text(HEADER.format(source=source) + "".join(lines))
    print(f"{path.relative_to(ENVS)}: {len(lines)} packages")


if __name__ == "__main__":
    main()
