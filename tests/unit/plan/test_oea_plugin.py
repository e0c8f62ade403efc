"""What an engine's plug-in says of itself, and an engine that has none or one that is silent."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from builders import PROJECT, STANDIN, STANDIN_OEA, with_plugin
from sgmatrix.plan.checked_cells import installations_of
from sgmatrix.plan.matrix import expand
from sgmatrix.plan.oea_plugin import plugin_facts, plugin_obstacle


@pytest.fixture
def engine():
    campaign = with_plugin(axes={"oea": ["off"]})
    return installations_of(campaign, list(expand(campaign).points), PROJECT)["standin"]


def env(*first, **more):
    return {"PYTHONPATH": ":".join(map(str, [*first, STANDIN, STANDIN_OEA])), **more}


def test_a_plug_in_that_fits_tells_who_it_is(engine):
    assert plugin_facts(engine) == {
        "plugin_version": "0.1.0+standin",
        "plugin_sha256": "0" * 64,
        "sglang_version": "0.5.23+standin",
        "supported": True,
        "why": None,
    }
    assert plugin_obstacle(engine) is None


def test_an_engine_without_it_says_where_it_is_missing_and_is_asked_nothing(engine):
    bare = replace(engine, plugins={}, python="/no/such/python")

    assert plugin_facts(bare) == {}
    assert plugin_obstacle(bare) == (
        "oea needs the plug-in sglang-oea in engine standin; fix: install it there, as "
        "plugins/sglang-oea/README.md says"
    )


def test_an_engine_that_it_does_not_know_is_an_obstacle_in_its_own_words(engine):
    other = replace(engine, env=env(SGLANG_STANDIN_OEA_UNSUPPORTED="SGLang 0.4 is not supported"))

    assert plugin_obstacle(other) == (
        "the plug-in sglang-oea of engine standin: SGLang 0.4 is not supported"
    )


@pytest.mark.parametrize("says", ["raise SystemExit(3)", "print('hello')", "import no_such_thing"])
def test_one_that_does_not_answer_is_an_obstacle(engine, tmp_path, says):
    package = tmp_path / "sglang_oea"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "support.py").write_text(says)

    why = plugin_obstacle(replace(engine, env=env(tmp_path)))

    assert why.startswith("the plug-in sglang-oea of engine standin: it does not answer: ")


def test_an_interpreter_that_is_not_there_is_an_obstacle(engine):
    why = plugin_obstacle(replace(engine, python="/no/such/python"))

    assert "it does not answer: " in why and "/no/such/python" in why


def test_variables_of_this_shell_do_not_change_what_it_says(engine, monkeypatch, tmp_path):
    monkeypatch.setenv("SGLANG_STANDIN_OEA_UNSUPPORTED", "from the shell")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    fresh = replace(engine, env=env(OEA_K0="1"))  # not answered before

    assert plugin_obstacle(fresh) is None
    assert Path(sys.executable) == Path(fresh.python)


def test_it_is_asked_once_per_engine_and_environment(engine, tmp_path):
    package, told = tmp_path / "sglang_oea", tmp_path / "told"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "support.py").write_text(
        f"open({str(told)!r}, 'a').write('.')\nprint('{{\"supported\": true}}')"
    )
    one = replace(engine, env=env(tmp_path))

    assert [plugin_obstacle(one), plugin_obstacle(one)] == [None, None]
    assert told.read_text() == "."
