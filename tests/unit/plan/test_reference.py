"""The schema and the reference page are those of the models."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from builders import campaign_data
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.reference import REFERENCE, SCHEMA, reference_text, schema_text

PROJECT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("path", "text"), [(SCHEMA, schema_text), (REFERENCE, reference_text)])
def test_the_files_are_in_step_with_the_models(path, text):
    assert (PROJECT / path).read_text() == text(), "run `make docs`"


@pytest.mark.parametrize("file", ["config/config.yaml", "tests/campaigns/standin.yaml"])
def test_the_schema_takes_our_campaigns_and_refuses_a_typo(file):
    schema = json.loads(schema_text())
    data = yaml.safe_load((PROJECT / file).read_text())
    jsonschema.validate(data, schema)

    with pytest.raises(jsonschema.ValidationError, match="concurency"):
        jsonschema.validate({**data, "load": {**data["load"], "concurency": [1]}}, schema)


def test_every_key_has_a_line_with_type_default_meaning_and_example():
    rows = {
        cells[1].strip(): [cell.strip() for cell in cells[2:-1]]
        for line in reference_text().partition("## Keys")[2].splitlines()
        if len(cells := re.split(r"(?<!\\)\|", line)) == 7 and "`" in cells[1]
    }

    assert {f"`{name}`" for name in Campaign.model_fields} <= rows.keys()
    assert len(rows) > 60
    for key, (kind, default, meaning, example) in rows.items():
        assert kind and default and meaning, key
        made_of_others = "mapping, below" in kind or "mapping of names" in kind
        assert example or made_of_others or key == "`rerun.recorded`", key
    assert rows["`engines.<name>.python`"][:2] == ["text", "required"]
    assert rows["`load.requests.min`"][:2] == ["whole number, >= 1", "`8`"]


def test_the_builders_campaign_is_one():
    jsonschema.validate(campaign_data(), json.loads(schema_text()))
