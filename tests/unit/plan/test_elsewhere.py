"""Plans on a machine that has neither the engine nor the model: made, marked, never launched."""

import json
import sys
from pathlib import Path

import pytest

from builders import PROJECT, STANDIN, campaign, campaign_data
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.layout import Layout
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.model import model_facts
from sgmatrix.plan.parts import Model
from sgmatrix.plan.plan import Plan, make_plan


def elsewhere(**changes: object) -> Campaign:
    data = campaign_data(**changes)
    data["engines"]["standin"] |= {"python": "not/here", "described_by": sys.executable}
    return Campaign.model_validate(data)


def plan(made: Campaign, tmp_path: Path) -> Plan:
    return make_plan(made, Layout(tmp_path / "results" / "c"), PROJECT)


def test_another_installation_answers_and_that_is_told(tmp_path: Path) -> None:
    made = plan(elsewhere(), tmp_path)
    (line,) = made.absences()
    assert line.startswith("engines.standin.python = not/here is not there; sglang ")
    assert line.endswith(f"at {sys.executable} answers for it")


def test_what_is_there_is_not_described_by_another(tmp_path: Path) -> None:
    data = campaign_data()
    data["engines"]["standin"]["described_by"] = "not/here"
    made = plan(Campaign.model_validate(data), tmp_path)
    assert made.absences() == []


def test_without_a_description_a_missing_engine_is_refused(tmp_path: Path) -> None:
    data = campaign_data()
    data["engines"]["standin"]["python"] = "not/here"
    with pytest.raises(SgmatrixError, match="not/here is no interpreter"):
        plan(Campaign.model_validate(data), tmp_path)
    data["engines"]["standin"]["described_by"] = "nor/there"
    with pytest.raises(SgmatrixError, match="nor/there is no interpreter"):
        plan(Campaign.model_validate(data), tmp_path)


def test_the_environment_of_the_engine_holds_for_the_other_too(tmp_path: Path) -> None:
    made = plan(elsewhere(), tmp_path)
    assert made.engines["standin"].package == str(STANDIN / "sglang")


def test_facts_stand_in_for_a_model_that_is_not_there(tmp_path: Path) -> None:
    facts = model_facts(Model(path="/none/GLM-5-NVFP4", facts="glm-5-nvfp4"), PROJECT, tmp_path)
    assert facts.absent
    assert (facts.name, facts.vocab_size) == ("GLM-5-NVFP4", 154880)
    assert (facts.heads, facts.experts, facts.experts_per_token) == (64, 256, 8)
    assert facts.expert_bytes == 3 * 6144 * 2048 * 0.5625
    made = campaign(model={"path": "/none/GLM-5-NVFP4", "facts": "glm-5-nvfp4"})
    assert plan(made, tmp_path).absences() == [
        "model.path = /none/GLM-5-NVFP4 is not there; config/models/glm-5-nvfp4.yaml speaks for it"
    ]


def test_a_model_that_is_there_speaks_for_itself(tmp_path: Path) -> None:
    config = {"model_type": "llama", "vocab_size": 77, "num_attention_heads": 4}
    (tmp_path / "config.json").write_text(json.dumps(config))
    facts = model_facts(Model(path=str(tmp_path), facts="glm-5-nvfp4"), PROJECT, tmp_path)
    assert not facts.absent
    assert (facts.vocab_size, facts.heads, facts.facts) == (77, 4, "glm-5-nvfp4")


def test_a_model_without_folder_and_facts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SgmatrixError, match=r"no config\.json"):
        model_facts(Model(path="/none/GLM-5"), PROJECT, tmp_path)
    with pytest.raises(SgmatrixError, match=r"model\.facts 'glm-9'"):
        model_facts(Model(path="/none/GLM-5", facts="glm-9"), PROJECT, tmp_path)
