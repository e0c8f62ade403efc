"""Which of SGLang's load clients a campaign uses."""

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan.client import client_facts
from sgmatrix.plan.engines import Installation
from sgmatrix.plan.load_parts import Load
from sgmatrix.plan.model import ModelFacts

ENGINE = Installation(
    name="e",
    python="/py",
    env={},
    version="0.5.23",
    lock="l",
    package="/p",
    contents="c",
    client_extension="/x.so",
    plugins={},
)
MODEL = ModelFacts(**dict.fromkeys(ModelFacts.__dataclass_fields__) | {"vocab_size": 9})


def load(**changes):
    return Load(**{"concurrency": [1], "input_len": 16, "output_len": 8} | changes)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "rust"),
        ({"request_rate": [2.0]}, "rust"),
        ({"request_rate": [2.0], "burstiness": 0.5}, "python"),
        ({"dataset": "topical"}, "python"),
        ({"dataset": "shared-prefix", "shared_prefix": {"prefix_len": 8}}, "python"),
        ({"client": "python"}, "python"),
        ({"client": "rust"}, "rust"),
    ],
)
def test_the_rust_client_is_taken_where_it_covers_the_load(changes, kind):
    assert client_facts(load(**changes), ENGINE, MODEL)["id"] == f"sglang-{kind} 0.5.23"


def test_what_the_rust_client_does_not_offer_is_no_surprise_at_run_time():
    asked = load(dataset="topical", client="rust")

    with pytest.raises(SgmatrixError, match="does not offer dataset topical") as caught:
        client_facts(asked, ENGINE, MODEL)

    assert caught.value.code == "client_setup"
