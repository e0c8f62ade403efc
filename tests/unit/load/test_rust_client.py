"""The runner of the Rust client: it loads an extension by its path and hands arguments over."""

import subprocess
import sys
from pathlib import Path

from sgmatrix.load import rust_client

RUNNER = Path(rust_client.__file__)


def run(*arguments):
    command = [sys.executable, "-I", "-S", str(RUNNER), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_extension_gets_the_arguments_as_its_own_command_line(tmp_path):
    extension = tmp_path / "_bench.py"  # any module that Python can load from a file
    extension.write_text("import sys\ndef run_argv(argv): print(__name__, *argv)\n")

    done = run(str(extension), "--seed=1", "--x=a b")

    assert (done.returncode, done.stdout) == (0, "_bench sglang-bench --seed=1 --x=a b\n")


def test_a_file_that_is_no_extension_is_named(tmp_path):
    done = run(str(tmp_path / "_bench.txt"))

    assert done.returncode == 1
    assert done.stderr == f"{tmp_path}/_bench.txt is no Python extension\n"


def test_it_imports_nothing_of_ours():
    assert "sgmatrix" not in RUNNER.read_text()
