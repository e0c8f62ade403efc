"""The lock files agree with each other and name nothing of the machine that made them."""

import re
from pathlib import Path

import pytest

from setup_pip import normal, read_pins

ENVS = Path(__file__).parents[3] / "envs"
HASHED = ["workflow/requirements.lock", "workflow/dev.lock", "sglang-cpu/requirements.lock"]
LINE = re.compile(r"[a-z0-9-]+==[A-Za-z0-9.+!]+ --hash=sha256:[0-9a-f]{64}")


def lines(name):
    text = (ENVS / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("name", [*HASHED, "pip.lock"])
def test_every_line_is_one_version_and_one_hash(name):
    assert lines(name)
    for line in lines(name):
        assert LINE.fullmatch(line), line


@pytest.mark.parametrize("name", HASHED)
def test_no_package_is_locked_twice_and_all_are_sorted(name):
    names = [line.partition("==")[0] for line in lines(name)]

    assert names == sorted(set(names))


def test_tools_add_to_the_workflow_and_change_nothing_of_it():
    workflow = read_pins(ENVS / "workflow/requirements.lock")
    dev = read_pins(ENVS / "workflow/dev.lock")

    assert not workflow.keys() & dev.keys()


def test_torch_stands_apart_without_hashes():
    assert lines("sglang-cpu/torch.lock") == ["torch==2.13.0", "torchvision==0.28.0"]
    assert not {"torch", "torchvision"} & read_pins(ENVS / "sglang-cpu/requirements.lock").keys()


@pytest.mark.parametrize(
    ("asked", "locks"),
    [
        ("workflow/requirements.in", ["workflow/requirements.lock"]),
        ("workflow/dev.in", ["workflow/requirements.lock", "workflow/dev.lock"]),
        ("sglang-cpu/requirements.in", ["sglang-cpu/requirements.lock"]),
    ],
)
def test_everything_asked_for_is_locked(asked, locks):
    names = {normal(re.split(r"[<>=!~ ]", line)[0]) for line in lines(asked)}

    assert names <= read_pins(*(ENVS / lock for lock in locks)).keys()


def test_the_engine_is_locked_at_the_versions_that_were_tried():
    asked = dict(
        line.partition("#")[0].strip().split("==") for line in lines("sglang-cpu/requirements.in")
    )

    assert read_pins(ENVS / "sglang-cpu/requirements.lock") == asked


@pytest.mark.parametrize(
    ("conda", "lock"),
    [
        ("workflow.yaml", "workflow/requirements.lock"),
        ("sglang-cpu.post-deploy.sh", "sglang-cpu/requirements.lock"),
    ],
)
def test_the_conda_files_hold_the_same_pins(conda, lock):
    text = (ENVS / conda).read_text(encoding="utf-8")

    assert LINE.findall(text) == lines(lock)
