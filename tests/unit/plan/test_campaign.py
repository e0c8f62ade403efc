"""A campaign file: closed models, and refusals that name every problem at once."""

import pytest
from pydantic import ValidationError

from builders import PROJECT, campaign_data
from sgmatrix.core.errors import Refusal
from sgmatrix.core.yaml_strict import yaml_text
from sgmatrix.plan.campaign import Campaign, read_campaign


@pytest.fixture
def problems(tmp_path):
    """The problems of a campaign file with these changes, without the file's name."""

    def problems(**changes):
        file = tmp_path / "c.yaml"
        file.write_text(yaml_text({k: v for k, v in campaign_data(**changes).items() if v != "-"}))
        with pytest.raises(Refusal) as caught:
            read_campaign(file)
        assert caught.value.code == "config_rejected"
        return [problem.removeprefix(f"{file}: ") for problem in caught.value.problems]

    return problems


def engine(**changes):
    return {"standin": {"python": "x", **changes}}


def load(**changes):
    return {"concurrency": [1], "input_len": 1, "output_len": 1, **changes}


def test_what_is_left_out_has_the_documented_default(tmp_path):
    file = tmp_path / "c.yaml"
    data = campaign_data()
    data["load"] = load(concurrency=[64, 1, 8])
    del data["deadlines"], data["study"]
    file.write_text(yaml_text(data))

    read = read_campaign(file)

    assert (read.design, read.launches, read.study) == ("full", 1, "sglang-matrix")
    assert (read.include, read.rerun, read.node.gpus) == ([], None, 0)
    assert read.load.concurrency == [1, 8, 64]  # from the lowest load up
    assert (read.load.requests.min, read.load.requests.per_concurrency) == (8, 4)
    assert (read.load.seed, read.load.dataset) == (1, "random-ids")
    assert (read.load.client.engine, read.load.client.kind) == (None, "auto")
    assert read.warmup.model_dump() == {"max_waves": 5, "agreement": 0.1}
    assert read.server.model_dump() == {"host": "127.0.0.1", "port": "auto"}
    assert read.deadlines.model_dump() == {
        "start_s": 600,
        "stall_s": 300,
        "point_s": 600,
        "warmup_s": 600,
        "stop_s": 30,
        "idle_s": 600,
    }


@pytest.mark.parametrize(
    ("keys", "allowed", "refused"),
    [
        ("server.port", [1024, 65535], [1023, 65536]),
        ("launches", [1, 99], [0, 100]),
        ("node.gpus", [0, 64], [-1, 65]),
        ("node.idle_memory_mib", [0], [-1]),
        ("warmup.max_waves", [0, 100], [-1, 101]),
        ("warmup.agreement", [0.001, 0.999], [0.0, 1.0]),
        ("load.seed", [0, 2**31 - 1], [-1, 2**31]),
        ("load.input_len", [1], [0]),
        ("load.output_len", [1], [0]),
        ("load.requests.min", [1], [0]),
        ("load.requests.per_concurrency", [1], [0]),
        ("deadlines.start_s", [0.1], [0]),
        ("deadlines.stall_s", [0.1], [0]),
        ("deadlines.point_s", [0.1], [0]),
        ("deadlines.warmup_s", [0.1], [0]),
        ("study", ["x", "x" * 200], ["", "x" * 201]),
        ("campaign", ["x", "x" * 80, "a.b_c-d"], ["", "x" * 81, "a b", "a/b", "-a"]),
    ],
)
def test_a_value_has_these_bounds(keys, allowed, refused):
    def validate(value):
        data = campaign_data()
        *path, last = keys.split(".")
        inner = data
        for key in path:
            inner = inner.setdefault(key, {})
        inner[last] = value
        return Campaign.model_validate(data)

    for value in allowed:
        assert validate(value)
    for value in refused:
        with pytest.raises(ValidationError, match="1 validation error"):
            validate(value)


@pytest.mark.parametrize(
    "file", ["config/config.yaml", "tests/campaigns/standin.yaml"], ids=lambda file: file
)
def test_the_campaigns_of_the_project_are_valid(file):
    read = read_campaign(PROJECT / file)

    assert read.engine in read.engines


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"laod": {}}, "laod: unknown key, did you mean 'load'?"),
        ({"deadlines": {"start": 1}}, "deadlines.start: unknown key, did you mean 'start_s'?"),
        (
            {"load": load(requests={"per_concurency": 2})},
            "load.requests.per_concurency: unknown key, did you mean 'per_concurrency'?",
        ),
        (
            {"load": load(client={"kidn": "rust"})},
            "load.client.kidn: unknown key, did you mean 'kind'?",
        ),
        (
            {"engines": engine(pythn="x")},
            "engines.standin.pythn: unknown key, did you mean 'python'?",
        ),
        (
            {"node": {"xyz": 1}},
            (
                "node.xyz: unknown key, allowed: "
                "['gpus', 'hardware', 'min_free_disk_mib', 'idle_memory_mib']"
            ),
        ),
        (
            {"rerun": {"launches": ["1"], "lunches": []}},
            "rerun.lunches: unknown key, did you mean 'launches'?",
        ),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_valid_one(problems, changes, want):
    assert problems(**changes) == [want]


def test_all_problems_of_a_file_are_named_at_once(problems):
    found = problems(
        campaign="a/b",
        launches=0,
        node={"gpus": "eight"},
        model={},
        laod=1,
        load={"concurrency": [], "input_len": 8},
    )

    assert [problem.partition(":")[0] for problem in found] == [
        "campaign = 'a/b'",
        "model",
        "node.gpus = 'eight'",
        "launches = 0",
        "load.request_rate",
        "load.output_len",
        "laod",
    ]
    assert "load.output_len: missing" in found
    assert "model: give exactly one of path and recipe" in found


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"launches": True}, "launches = True"),
        ({"launches": "3"}, "launches = '3'"),
        ({"launches": 1.5}, "launches = 1.5"),
        ({"node": {"gpus": False}}, "node.gpus = False"),
        ({"load": load(concurrency=[1, True])}, "load.concurrency[1] = True"),
        ({"load": load(concurrency=["8"])}, "load.concurrency[0] = '8'"),
        ({"load": load(input_len=1e3)}, "load.input_len = 1000.0"),
        ({"deadlines": {"stop_s": "30"}}, "deadlines.stop_s = '30'"),
        ({"deadlines": {"stop_s": True}}, "deadlines.stop_s = True"),
        ({"warmup": {"agreement": 1}}, "warmup.agreement = 1"),
        ({"engines": engine(env={"A": 1})}, "engines.standin.env.A = 1"),
        ({"campaign": 12}, "campaign = 12"),
    ],
)
def test_a_number_in_disguise_is_refused_with_its_value(problems, changes, key):
    (problem,) = problems(**changes)

    assert problem.startswith(f"{key}: Input should be")


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"axes": {"decode_steps": []}}, "axes: axis decode_steps: has no value"),
        ({"axes": {"../x": [1]}}, "axes: axis '../x': a name is lower case letters, digits and _"),
        ({"axes": {"Tp": [1]}}, "axes: axis 'Tp': a name is lower case letters, digits and _"),
        (
            {"include": [{"parallelism": "tp2"}, {"../../x": 1}]},
            "include: axis '../../x': a name is lower case letters, digits and _",
        ),
        ({"include": [{"api_key": "SENTINEL"}]}, "include[0].api_key: is a secret; fix: export it"),
        ({"axes": {"hf_token": ["x"]}}, "axes.hf_token: is a secret; fix: export it"),
        (
            {"engines": engine(env={"HF_TOKEN": "SENTINEL"})},
            "engines.standin.env.HF_TOKEN: is a secret; fix: export it",
        ),
        (
            {"engines": engine(flags={"api-key": "SENTINEL"})},
            "engines.standin.flags.api-key: is a secret; fix: export it",
        ),
        ({"axes": {}}, "axes: Dictionary should have at least 1 item"),
        ({"engine": "sglang"}, "engine = 'sglang' is not one of engines: ['standin']"),
        (
            {"load": load(client={"engine": "other"})},
            "load.client.engine = 'other' is not one of engines: ['standin']",
        ),
        ({"model": {"path": "m", "recipe": "tiny-qwen3-moe"}}, "model: give exactly one of"),
        ({"server": {"port": 80}}, "server.port = 80: allowed: auto or 1024 to 65535"),
        ({"server": {"host": "0.0.0.0"}}, "server.host = '0.0.0.0': Input should be '127.0.0.1'"),
        ({"load": load(concurrency=[8, 1, 8])}, "load.concurrency: a concurrency stands twice"),
        ({"load": load(seed=2**31)}, "load.seed = 2147483648: "),
        ({"campaign": ".hidden"}, "campaign = '.hidden': String should match pattern"),
        ({"campaign": "-"}, "campaign: missing"),
        ({"deadlines": {"idle_s": 0}}, "deadlines.idle_s = 0: Input should be greater than 0"),
    ],
)
def test_an_impossible_value_is_refused_with_what_is_allowed(problems, changes, want):
    (problem,) = problems(**changes)

    assert problem.startswith(want)
    assert "SENTINEL" not in problem


@pytest.mark.parametrize("name", ["models", "mlartifacts"])
def test_folders_of_the_workflow_are_no_names_of_campaigns(name):
    with pytest.raises(ValidationError, match="is kept for the workflow itself"):
        Campaign.model_validate(campaign_data(campaign=name))


def test_a_token_is_refused_whatever_its_variable_is_called():
    data = campaign_data()
    data["engines"]["standin"]["env"]["FOO"] = "hf_abcdefghijkl"

    with pytest.raises(ValidationError, match=r"engines\.standin\.env\.FOO: holds a secret"):
        Campaign.model_validate(data)
