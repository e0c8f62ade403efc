"""The folder of a killed warden is removed by a later launch, and no other one."""

import os
import tempfile

import pytest

from sgmatrix.core.files import write_json
from sgmatrix.node import proc, rundirs
from sgmatrix.node.rundirs import make_run_dir, remove_abandoned


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make the folder of a launch whose job is this one, an hour and more ago."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def folder(job, age_s=2 * rundirs._YOUNG_S):
        made = make_run_dir()
        write_json(made / "spec.json", {"job": job})
        os.mkfifo(made / "control")
        then = made.stat().st_mtime - age_s
        os.utime(made, (then, then))
        return made

    return folder


def me():
    return proc.identify(os.getpid()).record()


def gone():
    return me() | {"pid": 2**22 - 1}


def test_a_folder_whose_job_and_warden_are_gone_is_removed(folder):
    left = folder(gone())

    remove_abandoned()

    assert not left.exists()


def test_a_folder_that_somebody_keeps_stays(folder):
    starting, young, kept = folder(me()), folder(gone(), age_s=60), folder(gone())
    reader = os.open(kept / "control", os.O_RDONLY | os.O_NONBLOCK)

    remove_abandoned()

    assert all(one.exists() for one in (starting, young, kept))
    os.close(reader)


def test_a_folder_that_tells_nothing_stays(folder, tmp_path):
    damaged = folder(gone())
    (damaged / "spec.json").write_text("{")
    other = tmp_path / "sgmatrix-run-of-somebody"
    other.mkdir()
    os.utime(other, (0, 0))

    remove_abandoned()

    assert damaged.exists() and other.exists()
