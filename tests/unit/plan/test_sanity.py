"""What may stand nowhere in a campaign file, whichever key it is below."""

import pytest

from sgmatrix.plan.sanity import insane_places

SECRET = "is a secret; fix: export it in the shell that runs snakemake"
HOLDS = "holds a secret; fix: export it in the shell that runs snakemake"


@pytest.mark.parametrize(
    ("data", "want"),
    [
        ({"axes": {"FOO": ["hf_SENTINELabcdefghijk"]}}, f"axes.FOO[0]: {HOLDS}"),
        ({"axes": {"x": [{"api_key": "SENTINEL"}]}}, f"axes.x[0].api_key: {SECRET}"),
        ({"axes": {"revision": ["http://u:SENTINEL@h/"]}}, f"axes.revision[0]: {HOLDS}"),
        ({"include": [{"FOO": "sk-SENTINELabcdefghijk"}]}, f"include[0].FOO: {HOLDS}"),
        ({"environments": {"a": {"HF_TOKEN": "SENTINEL"}}}, f"environments.a.HF_TOKEN: {SECRET}"),
        ({"patches": {"p": {"edits": [{"replace": "ghp_SENTINELabcdefghijk"}]}}},
         f"patches.p.edits[0].replace: {HOLDS}"),
        ({"axes": {"NCCL_ALGO": ["a\0b"]}}, "axes.NCCL_ALGO[0]: holds a NUL character"),
        ({"axes": {"x": ["\ud800"]}}, "axes.x[0]: holds half a character"),
        ({"axes": {"x": ["y" * 140_000]}}, "axes.x[0]: 140000 characters, allowed: 100000"),
        ({"axes": {"j": [{"a": {1: "x"}}]}}, "axes.j[0].a: key 1 is no text"),
        ({1: "x"}, "the file: key 1 is no text"),
    ],
)  # fmt: skip
def test_it_is_found_and_its_place_named(data, want):
    (line,) = insane_places(data)

    assert line.startswith(want)
    assert "SENTINEL" not in line


def test_all_places_are_named():
    data = {"env": {"HF_TOKEN": "a", "B": "hf_abcdefghijklm"}, "flags": {"api_key": "c"}}

    assert [line.partition(":")[0] for line in insane_places(data)] == [
        *("env.HF_TOKEN", "env.B", "flags.api_key")
    ]


@pytest.mark.parametrize(
    "data",
    [
        {"flags": {"api_key": None, "tokenizer_path": "x", "max_total_tokens": 4}},
        {"model": {"path": "/models/GLM 5 (NVFP4)"}, "axes": {"x": [1, True, None, "grün"]}},
    ],
)
def test_what_is_no_secret_is_let_through(data):
    assert list(insane_places(data)) == []
