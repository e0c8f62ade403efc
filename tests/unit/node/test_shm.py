"""Segments of processes that have ended are taken away; everybody else's stay."""

import pytest

from sgmatrix.node import shm


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(shm, "FOLDER", tmp_path)
    return tmp_path


def test_only_segments_of_these_processes_are_removed(folder):
    names = [
        *("sgl_shm_mq_41_8dc3f115", "sgl_shm_mm_42_00000000"),  # ours
        *("sgl_shm_mq_43_8dc3f115", "sgl_shm_mq_41", "other_41_8dc3f115", "sgl_shm_mq_41_x"),
    ]
    for name in names:
        (folder / name).write_bytes(b"x" * 10)

    assert shm.remove_segments({41, 42}) == 20
    assert sorted(path.name for path in folder.iterdir()) == sorted(names[2:])


def test_a_machine_without_such_a_folder_is_no_fault(folder):
    folder.rmdir()

    assert shm.remove_segments({41}) == 0
