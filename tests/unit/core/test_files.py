"""Files are complete or not there, and JSON is strict."""

import json
import os
import stat
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgmatrix.core.files import (
    append_line,
    publish,
    read_json,
    read_json_or_none,
    replacing,
    write_json,
    write_text,
)


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_block_that_fails_leaves_the_old_file_and_no_neighbour(tmp_path):
    target = tmp_path / "record.json"
    target.write_text("old")

    def fill():
        with replacing(target) as neighbour:
            neighbour.write_text("ne")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fill()

    assert target.read_text() == "old"
    assert names(tmp_path) == ["record.json"]


def test_a_block_that_is_interrupted_leaves_no_neighbour_either(tmp_path):
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "new.json"):
        raise KeyboardInterrupt

    assert names(tmp_path) == []


def test_the_final_name_appears_only_after_the_block(tmp_path):
    target = tmp_path / "deep" / "er" / "record.json"

    with replacing(target) as neighbour:
        neighbour.write_text("new")
        assert not target.exists()
        assert neighbour.parent == target.parent  # a rename over file systems is no rename

    assert target.read_text() == "new"
    assert names(target.parent) == ["record.json"]


def test_a_block_that_removed_its_neighbour_reports_its_own_error(tmp_path):
    def fill():
        with replacing(tmp_path / "x") as neighbour:
            neighbour.unlink()  # as pyarrow does when it fails
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        fill()


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
def test_mode_follows_the_umask(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        write_text(tmp_path / "shared", "x")
        assert os.umask(umask) == umask  # left as it was found
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == mode


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_json_refuses_a_number_that_is_not_finite_and_keeps_the_old_file(tmp_path, number):
    target = tmp_path / "record.json"
    write_json(target, {"ttft_ms": 1.5})

    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(target, {"points": [{"ttft_ms": number}]})

    assert read_json(target) == {"ttft_ms": 1.5}
    assert names(tmp_path) == ["record.json"]


def test_the_same_data_gives_the_same_bytes_whatever_the_order_of_its_keys(tmp_path):
    write_json(tmp_path / "a", {"b": 1, "a": None})
    write_json(tmp_path / "b", {"a": None, "b": 1})

    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_text() == '{\n "a": null,\n "b": 1\n}\n'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(data=JSON)
def test_what_was_written_is_read_back(tmp_path_factory, data):
    target = tmp_path_factory.getbasetemp() / "round-trip.json"

    write_json(target, data)

    assert read_json(target) == data
    assert json.dumps(read_json(target), sort_keys=True) == json.dumps(data, sort_keys=True)


@pytest.mark.parametrize("content", [None, b"", b'{"half": ', b"\xff\xfe"])
def test_a_file_that_is_absent_or_no_json_is_none(tmp_path, content):
    target = tmp_path / "record.json"
    if content is not None:
        target.write_bytes(content)

    assert read_json_or_none(target) is None


def test_publish_copies_the_bytes_and_keeps_the_source(tmp_path):
    source, target = tmp_path / "history" / "a", tmp_path / "cells" / "a"
    source.parent.mkdir()
    source.write_bytes(b"\x00\xff")

    publish(source, target)

    assert (source.read_bytes(), target.read_bytes()) == (b"\x00\xff", b"\x00\xff")


def test_publishing_what_is_not_there_keeps_the_old_view(tmp_path):
    (tmp_path / "view").write_text("old")

    with pytest.raises(FileNotFoundError):
        publish(tmp_path / "absent", tmp_path / "view")

    assert (tmp_path / "view").read_text() == "old"
    assert names(tmp_path) == ["view"]


def test_lines_of_many_writers_do_not_mix(tmp_path):
    log = tmp_path / "events.jsonl"
    lines = [f"{writer}-{i}" * 20 for writer in range(4) for i in range(50)]
    threads = [
        threading.Thread(
            target=lambda part: [append_line(log, x) for x in part], args=(lines[i::4],)
        )
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(log.read_text().splitlines()) == sorted(lines)


def test_a_process_killed_in_the_block_leaves_the_old_file(tmp_path):
    target = tmp_path / "record.json"
    target.write_text("old")
    code = (
        "import os, pathlib, sys; from sgmatrix.core.files import replacing\n"
        "with replacing(pathlib.Path(sys.argv[1])) as neighbour:\n"
        "    neighbour.write_text('ne'); os.kill(os.getpid(), 9)"
    )

    done = subprocess.run(
        [sys.executable, "-S", "-c", code, str(target)],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )

    assert done.returncode == -9
    assert target.read_text() == "old"
