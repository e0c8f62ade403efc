"""Prompts of the user's own file."""

import json

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.plan.prompts import read_prompts


def write(path, *entries):
    path.write_text("\n".join(json.dumps(entry) for entry in entries) + "\n\n", encoding="utf-8")
    return path


def test_every_form_of_a_prompt_is_read_in_order(tmp_path):
    file = write(
        tmp_path / "p.jsonl",
        {"prompt": "eins\u2028zwei"},
        {"text": "two"},
        {"conversations": [{"from": "human", "value": "three"}, {"value": "answer"}]},
        {"conversation": [{"role": "user", "content": "four"}]},
    )

    assert read_prompts(file) == ["eins\u2028zwei", "two", "three", "four"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"prompt": "a"}\n{"prompt"', "line 2: is no JSON"),
        ('{"prompt": "a"}\n{"question": "b"}', "line 2: has no prompt, text or conversations"),
        ('{"prompt": ""}', "line 1: has no prompt"),
        ('{"prompt": 7}', "line 1: has no prompt"),
        ('["a"]', "line 1: has no prompt"),
        ('{"conversations": []}', "line 1: has no prompt"),
        ("\n \n", "holds no prompt"),
    ],
)
def test_what_is_no_prompt_is_named_with_its_line(tmp_path, text, why):
    file = tmp_path / "p.jsonl"
    file.write_text(text)

    with pytest.raises(SgmatrixError, match=why) as caught:
        read_prompts(file)

    assert caught.value.code == "config_rejected"
    assert str(file) in caught.value.facts


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SgmatrixError, match=r"none\.jsonl: No such file"):
        read_prompts(tmp_path / "none.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b'{"prompt": "\xe4"}')
    with pytest.raises(SgmatrixError, match="is not UTF-8"):
        read_prompts(tmp_path / "latin.jsonl")
