"""Facts of an installation, read from its folders; the interpreters here are made up."""

import hashlib
import json

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan.engines import installation
from sgmatrix.plan.parts import Engine


class MadeUp:
    """An installation folder: an `interpreter` that only says where it imports from."""

    def __init__(self, folder):
        self.folder = folder
        self.site = folder / "site-packages"
        self.site.mkdir(parents=True)
        self.python = folder / "python"
        self.answer(f"echo '{json.dumps(['/nowhere', str(self.site)])}'")

    def answer(self, command):
        self.python.write_text(f"#!/bin/sh\n{command}\n")
        self.python.chmod(0o755)

    def add(self, distribution, package=None, site=None):
        site = site or self.site
        (site / f"{distribution}.dist-info").mkdir(parents=True)
        if package:
            (site / package).mkdir(exist_ok=True)
            (site / package / "__init__.py").touch()

    def engine(self, **changes):
        return Engine(**{"python": str(self.python), **changes})


@pytest.fixture
def made(tmp_path):
    made = MadeUp(tmp_path / "engine")
    made.add("sglang-0.5.23", "sglang")
    made.add("torch-2.9.1")
    return made


def refusal(*args):
    with pytest.raises(SgmatrixError) as caught:
        installation(*args)
    assert caught.value.code == "engine_missing"
    return str(caught.value)


def test_version_and_lock_come_from_the_folder_without_importing_it(made, tmp_path):
    (made.site / "sglang" / "__init__.py").write_text("raise SystemExit('imported')")

    found = installation("cuda", made.engine(), tmp_path)

    assert (found.name, found.version) == ("cuda", "0.5.23")
    assert found.python == str(made.python)
    lines = b"sglang-0.5.23.dist-info\ntorch-2.9.1.dist-info"
    assert found.lock == hashlib.sha256(lines).hexdigest()
    assert found.client_extension is None


def test_the_rust_client_is_found_where_sglang_keeps_it(made, tmp_path):
    extension = made.site / "sglang/srt/rust_extensions/_bench.cpython-311-x86_64-linux-gnu.so"
    extension.parent.mkdir(parents=True)
    extension.touch()

    assert installation("e", made.engine(), tmp_path).client_extension == str(extension)


def test_another_package_beside_it_is_another_lock_and_a_moved_folder_is_not(made, tmp_path):
    before = installation("e", made.engine(), tmp_path)
    moved = MadeUp(tmp_path / "elsewhere")
    moved.add("torch-2.9.1")
    moved.add("sglang-0.5.23", "sglang")
    assert installation("e", moved.engine(), tmp_path).lock == before.lock

    moved.add("flashinfer-0.4.0")
    assert installation("e", moved.engine(), tmp_path).lock != before.lock


def test_the_first_folder_of_the_search_path_wins(made, tmp_path):
    shadow = tmp_path / "shadow"
    made.add("sglang-0.5.24.dev1", "sglang", site=shadow)
    made.answer(f"echo '{json.dumps([str(shadow), str(made.site)])}'")

    assert installation("e", made.engine(), tmp_path).version == "0.5.24.dev1"


def test_metadata_without_the_package_is_no_installation(made, tmp_path):
    orphan = tmp_path / "orphan"
    made.add("sglang-0.4.0", site=orphan)  # what an unfinished uninstall leaves
    made.answer(f"echo '{json.dumps([str(orphan), str(made.site)])}'")

    assert installation("e", made.engine(), tmp_path).version == "0.5.23"


def test_its_environment_is_declared_and_may_name_the_project(made, tmp_path):
    made.answer('test "$SHIM" = "' + str(tmp_path) + f'/shim" && echo \'["{made.site}"]\'')

    found = installation("e", made.engine(env={"SHIM": "{project}/shim", "X": "{other}"}), tmp_path)

    assert found.env == {"SHIM": f"{tmp_path}/shim", "X": "{other}"}


@pytest.mark.parametrize("python", ["engine/python", "~/engine/python"])
def test_a_relative_path_counts_from_the_project_and_a_tilde_from_home(
    made, tmp_path, python, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))

    found = installation("e", made.engine(python=python), tmp_path)

    assert found.python == str(made.python)


def test_an_interpreter_that_is_not_there_is_named_as_it_was_written(made, tmp_path):
    assert refusal("cuda", made.engine(python="no/python"), tmp_path) == (
        "engine_missing: engines.cuda.python = no/python is no interpreter; "
        "fix: make setup, or correct engines.cuda.python"
    )


def test_a_file_that_may_not_be_run_is_no_interpreter(made, tmp_path):
    made.python.chmod(0o644)

    assert "is no interpreter" in refusal("e", made.engine(), tmp_path)


@pytest.mark.parametrize("command", ["exit 3", "echo 'no json'"])
def test_an_interpreter_that_does_not_run_is_named(made, tmp_path, command):
    made.answer(command)

    assert f"{made.python} does not run" in refusal("e", made.engine(), tmp_path)


def test_an_interpreter_without_sglang_is_refused(tmp_path):
    bare = MadeUp(tmp_path / "bare")
    bare.add("torch-2.9.1", "torch")

    assert f"engines.e: no sglang for {bare.python}" in refusal("e", bare.engine(), tmp_path)
