"""Three cells that stand for all: the base, a better one, and one that died; and MLflow."""

import copy
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import campaign
from finished import Finished
from sgmatrix.core.layout import Layout

CRASH = "AttributeError: 'ForwardMetadata' object has no attribute 'page_table_1_flattened'"
SCRIPT = "<script>document.title='taken over'</script> api_key='sk-1'"


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """A campaign that ended: tp1 the base, tp2 better, tp4 died at concurrency 2. Read it only."""
    axes = {"parallelism": ["tp1", "tp2", "tp4"]}
    history = Finished(tmp_path_factory.mktemp("told"), campaign(axes=axes))
    history.measured("tp1", rates={1: 64, 2: 100})
    history.measured("tp2", rates={1: 60, 2: 125}, itl_s=0.001)
    history.died("tp4", root=CRASH, rates={1: 400})
    history.collect()
    return history


@pytest.fixture
def told(written, tmp_path):
    """A copy of that campaign, to be changed."""
    history = copy.copy(written)
    history.layout = Layout(tmp_path / "results" / written.layout.root.name)
    shutil.copytree(written.layout.root, history.layout.root)
    return history


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory) -> Iterator[Path]:
    """A database as MLflow makes it, once for all tests: its migrations take a second.

    No test asks whether a commit reached the disk, so none waits for it.
    """
    from sgmatrix.present.tracking.connection import connect, without_fsync
    from sgmatrix.present.tracking.target import Target

    file = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    with without_fsync():
        connect(Target(f"sqlite:///{file}", str(file), file))
        yield file


@pytest.fixture
def database(told, empty_database) -> Path:
    """Where the track job of `told` writes to."""
    file = told.layout.root.parent / "mlflow.db"
    shutil.copyfile(empty_database, file)
    return file
