"""Whether a finding still stands: what differs from where it was found, or is not said there."""

import pytest

from sgmatrix.analysis.ledger.retest import (
    Here,
    differing,
    engine_text,
    hardware_names,
    hardware_text,
)
from sgmatrix.plan.ledger import Conditions

HERE = Here("GLM-5", ("NVIDIA RTX PRO 6000 Blackwell",), (8,), ("0.5.23",))
THERE = {"model": "GLM-5", "hardware": "RTX PRO 6000", "gpus": 8, "engine_version": "0.5.23"}


def told(here=HERE, **changes):
    conditions = {name: one for name, one in {**THERE, **changes}.items() if one is not None}
    return differing(Conditions.model_validate(conditions), here)


def test_one_with_the_same_model_hardware_and_engine_stands():
    assert told() == ()
    assert told(model="glm-5", gpus=None) == ()


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"model": "Kimi"}, "model GLM-5, not Kimi"),
        ({"model": None}, "the entry names no model"),
        (
            {"hardware": "H200"},
            "hardware NVIDIA RTX PRO 6000 Blackwell, not 8x H200",
        ),
        ({"hardware": None}, "the entry names no hardware"),
        ({"gpus": 4}, "8 GPUs, not 4"),
        ({"engine_version": "0.5.22"}, "engine 0.5.23, not sglang 0.5.22"),
        ({"engine_version": None}, "the entry names no engine version"),
        (
            {"engine_version": None, "engine_commit": "3207427"},
            "engine 0.5.23, not sglang commit 3207427",
        ),
    ],
)
def test_each_that_differs_or_is_not_said_is_named(changes, want):
    assert told(**changes) == (want,)


def test_all_that_differ_are_named():
    assert len(told(model="Kimi", hardware="H200", engine_version="0.5.22")) == 3


def test_hardware_that_is_not_known_is_never_the_same():
    here = Here("GLM-5", (), (8,), ("0.5.23",))

    assert told(here) == ("hardware not known here, found on 8x RTX PRO 6000",)


def test_cells_of_several_engines_name_the_one_that_is_another():
    here = Here("GLM-5", HERE.hardware, (8,), ("0.5.22", "0.5.23"))

    assert told(here) == ("engine 0.5.22, not sglang 0.5.23",)


@pytest.mark.parametrize(
    ("version", "same"),
    [
        ("0.5.6.post1.dev12+g3207427", True),
        ("0.5.6.post1.dev12+g3207427abc", True),
        ("0.5.6.post1.dev12+g3207428", False),
        ("0.5.6", False),
        ("0.5.3207427", False),
    ],
)
def test_a_build_is_known_by_the_commit_in_its_version(version, same):
    here = Here("GLM-5", HERE.hardware, (8,), (version,))

    assert (told(here, engine_version=None, engine_commit="3207427") == ()) is same


@pytest.mark.parametrize(
    ("node", "want"),
    [
        ({"gpus": [{"name": "H200"}, {"name": "H200"}], "processor": "Xeon"}, ("H200",)),
        ({"gpus": [{"name": "A"}, {"name": None}, {"name": "B"}]}, ("A", "B")),
        ({"gpus": [], "processor": "Xeon"}, ("Xeon",)),
        ({"gpus": None, "processor": "Xeon"}, ()),  # they could not be asked
        ({"gpus": [], "processor": None}, ()),
        ({}, ()),
    ],
)
def test_a_node_computes_on_its_gpus_or_else_its_processor(node, want):
    assert hardware_names(node) == want


def test_conditions_in_words():
    whole = Conditions.model_validate(THERE)
    nothing = Conditions()

    assert (hardware_text(whole), engine_text(whole)) == ("8x RTX PRO 6000", "sglang 0.5.23")
    assert (hardware_text(nothing), engine_text(nothing)) == ("", "")
    assert engine_text(Conditions(engine_commit="3207427")) == "sglang commit 3207427"
