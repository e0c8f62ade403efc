"""Patches are made to a copy; what does not fit is refused before anything is copied."""

import sys
from pathlib import Path

import pytest

from builders import STANDIN
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan.parts import Edit, Patch
from sgmatrix.plan.patched_copy import patch_diff, provide
from sgmatrix.plan.patches import patch_hash, planned_copy

SOURCE = "BACKENDS = [\n    'cutlass',\n]\n\nLIMIT = 1\nOTHER = 1\n"
FILE = "sglang/srt/runner.py"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package with one module and its compiled code."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "site" / "sglang"
    (folder / "srt").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "srt" / "runner.py").write_text(SOURCE)
    return folder


def patch(find="    'cutlass',\n", replace="    'cutlass',\n    'flashinfer',\n", **changes):
    return Patch(edits=[Edit(file=FILE, find=find, replace=replace, **changes)])


def refusal(package, *patches):
    with pytest.raises(SgmatrixError) as caught:
        planned_copy(package, "contents", {f"p{i}": one for i, one in enumerate(patches)})
    assert caught.value.code == "config_rejected"
    return caught.value.facts


def files(folder):
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def environment(copy):
    return {"PYTHONPATH": copy.folder}


def test_the_copy_has_the_edit_and_the_installation_is_as_it_was(package):
    before = files(package)

    copy = planned_copy(package, "contents", {"autotune": patch()})
    provide(copy, sys.executable, environment(copy))

    want = SOURCE.replace("'cutlass',\n", "'cutlass',\n    'flashinfer',\n")
    assert (copy.package / "srt/runner.py").read_text() == want
    assert files(package) == before


def test_planning_writes_nothing(package, tmp_path):
    planned_copy(package, "contents", {"autotune": patch()})

    assert not (tmp_path / "cache").exists()


def test_a_copy_is_made_once(package):
    copy = planned_copy(package, "contents", {"autotune": patch()})
    provide(copy, sys.executable, environment(copy))
    first = Path(copy.folder).stat().st_ino

    provide(copy, sys.executable, environment(copy))

    assert Path(copy.folder).stat().st_ino == first


@pytest.mark.parametrize("change", ["edit", "remove"])
def test_a_copy_that_somebody_changed_is_made_anew(package, change):
    copy = planned_copy(package, "contents", {"autotune": patch()})
    provide(copy, sys.executable, environment(copy))
    file = copy.package / "srt/runner.py"
    whole = file.read_text()
    if change == "edit":
        file.write_text(whole + "LIMIT = 9\n")
    else:
        file.unlink()

    provide(copy, sys.executable, environment(copy))

    assert file.read_text() == whole


def test_another_edit_order_or_installation_is_another_copy(package):
    one, two = patch(), patch("LIMIT = 1", "LIMIT = 2")
    folders = {
        planned_copy(package, contents, patches).folder
        for contents, patches in [
            ("a", {"x": one}),
            ("b", {"x": one}),
            ("a", {"x": two}),
            ("a", {"x": one, "y": two}),
            ("a", {"y": two, "x": one}),
        ]
    }
    assert len(folders) == 5
    # a name changes no byte of the server
    assert planned_copy(package, "a", {"z": one}).folder in folders


def test_the_hash_is_of_what_a_patch_does_not_of_how_it_is_called():
    edit = patch().edits[0]

    assert patch_hash(Patch(about="a", edits=[edit])) == patch_hash(Patch(about="b", edits=[edit]))
    assert patch_hash(patch(replace="other")) != patch_hash(patch())
    assert len(patch_hash(patch())) == 64


def test_the_difference_is_shown_as_a_diff(package):
    copy = planned_copy(package, "contents", {"autotune": patch()})

    assert patch_diff(copy) == (
        "--- a/sglang/srt/runner.py\n"
        "+++ b/sglang/srt/runner.py\n"
        "@@ -1,5 +1,6 @@\n"
        " BACKENDS = [\n"
        "     'cutlass',\n"
        "+    'flashinfer',\n"
        " ]\n"
        " \n"
        " LIMIT = 1\n"
    )


def test_two_patches_of_one_file_are_made_in_their_order(package):
    copy = planned_copy(
        package, "c", {"a": patch("LIMIT = 1", "LIMIT = 2"), "b": patch("LIMIT = 2", "LIMIT = 3")}
    )
    provide(copy, sys.executable, environment(copy))

    assert "LIMIT = 3\n" in (copy.package / "srt/runner.py").read_text()


@pytest.mark.parametrize(
    ("edit", "want"),
    [
        (
            patch("no such text"),
            "patches.p0.edits[0]: `find` stands 0 times in sglang/srt/runner.py, count = 1",
        ),
        (
            patch("= 1", "= 2"),
            "patches.p0.edits[0]: `find` stands 2 times in sglang/srt/runner.py, count = 1",
        ),
        (
            patch("LIMIT = 1\n", "OTHER = 1\n"),
            (
                "patches.p0.edits[0]: could not be taken back, `replace` stands elsewhere in "
                "sglang/srt/runner.py too"
            ),
        ),
        (
            patch("LIMIT = 1", "LIMIT = ("),
            "patches: sglang/srt/runner.py is no Python any more, line 5: '(' was never closed",
        ),
        (
            Patch(edits=[Edit(file="sglang/srt/none.py", find="a", replace="b")]),
            "patches.p0.edits[0].file = sglang/srt/none.py: No such file or directory",
        ),
    ],
)
def test_what_does_not_fit_is_refused(package, edit, want):
    assert refusal(package, edit) == want


def test_an_edit_of_all_places_says_how_many_there_are(package):
    copy = planned_copy(package, "c", {"both": patch("= 1", "= 22", count=2)})

    assert patch_diff(copy).splitlines()[-2:] == ["+LIMIT = 22", "+OTHER = 22"]


@pytest.mark.parametrize(
    "file", ["/etc/passwd", "../x.py", "sglang/../../x", "torch/a.py", "sglang", "sglang//a"]
)
def test_only_files_of_the_engine_are_edited(file):
    with pytest.raises(ValueError, match="a path below the package"):
        Edit(file=file, find="a", replace="b")


def test_an_engine_that_would_not_run_the_copy_is_named(package):
    copy = planned_copy(package, "contents", {"autotune": patch()})

    with pytest.raises(SgmatrixError) as caught:
        provide(copy, sys.executable, {"PYTHONPATH": str(STANDIN)})

    assert caught.value.code == "engine_missing"
    assert f"imports sglang from {STANDIN}/sglang/__init__.py, not from" in caught.value.facts


def test_a_making_that_fails_leaves_nothing_half_made(package, tmp_path):
    copy = planned_copy(package, "contents", {"autotune": patch()})
    (package / "srt" / "runner.py").write_text("changed since\n")

    with pytest.raises(SgmatrixError, match="`find` stands 0 times"):
        provide(copy, sys.executable, environment(copy))

    left = [path.name for path in (tmp_path / "cache/sgmatrix/patched").iterdir()]
    assert left == [f".{Path(copy.folder).name}.lock"]
