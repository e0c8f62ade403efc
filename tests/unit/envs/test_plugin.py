"""envs/setup_plugin.py: the plug-in is installed anew when its sources are others, then only."""

import shutil
from pathlib import Path

import pytest

import setup_plugin
from setup_plugin import STAMP, has_plugin, install_plugin, plugin_hash


class Pip:
    """Notes what it is told to install, and what lies there."""

    def __init__(self):
        self.installed = []

    def install(self, words):
        *options, source = words
        files = {str(f.relative_to(source)) for f in Path(source).rglob("*") if f.is_file()}
        self.installed.append((options, files))


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A copy of the plug-in that may be changed."""
    copy = tmp_path / "plugin"
    shutil.copytree(setup_plugin.SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(setup_plugin, "SOURCE", copy)
    monkeypatch.setattr(setup_plugin.plugin_hash, "__defaults__", (copy,))
    return copy


@pytest.fixture
def engine(tmp_path):
    folder = tmp_path / "engine"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    "name", ["sglang_oea/eager.py", "sglang_oea/__init__.py", "pyproject.toml"]
)
def test_a_changed_source_changes_the_hash(source, name):
    before = plugin_hash(source)
    file = source / name
    file.write_text(file.read_text() + "\n")

    assert plugin_hash(source) != before


def test_a_new_a_renamed_and_a_lost_source_do_so(source):
    hashes = [plugin_hash(source)]
    (source / "sglang_oea/more.py").write_text("")
    hashes.append(plugin_hash(source))
    (source / "sglang_oea/more.py").rename(source / "sglang_oea/other.py")
    hashes.append(plugin_hash(source))
    (source / "sglang_oea/other.py").unlink()

    assert len(set(hashes)) == 3
    assert plugin_hash(source) == hashes[0]


def test_what_is_not_installed_does_not_count(source):
    before = plugin_hash(source)
    (source / "README.md").write_text("another text")
    (source / "tests/test_more.py").write_text("")
    (source / "sglang_oea/__pycache__").mkdir()
    (source / "sglang_oea/__pycache__/eager.cpython-311.pyc").write_bytes(b"x")

    assert plugin_hash(source) == before


def test_an_environment_has_the_plug_in_from_its_installation_to_the_next_change(source, engine):
    assert not has_plugin(engine)
    install_plugin(Pip(), engine)
    assert has_plugin(engine)

    (source / "sglang_oea/eager.py").write_text("")
    assert not has_plugin(engine)
    install_plugin(Pip(), engine)
    assert has_plugin(engine)


def test_the_package_alone_is_installed_and_nothing_is_fetched(source, engine):
    (source / "build").mkdir()
    (source / "build/old.py").touch()
    pip = Pip()
    install_plugin(pip, engine)

    ((options, files),) = pip.installed
    assert options == ["--no-deps", "--no-build-isolation", "--no-index", "--force-reinstall"]
    assert {"pyproject.toml", "sglang_oea/__init__.py", "sglang_oea/forced.py"} <= files
    assert not [name for name in files if name.startswith(("tests/", "device/", "build/"))]


def test_an_installation_that_fails_is_none(source, engine):
    install_plugin(Pip(), engine)

    class Failing(Pip):
        def install(self, words):
            raise RuntimeError("pip failed")

    with pytest.raises(RuntimeError):
        install_plugin(Failing(), engine)
    assert not has_plugin(engine)
    assert not (engine / STAMP).exists()
