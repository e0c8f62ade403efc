"""What a probe asks of the stand-in: experts of each step, forced tokens, requests at once."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from builders import PROJECT, STANDIN_OEA

COUNTS = PROJECT / "workflow/scripts/sgmatrix/load/probe/counts.py"
RECORDER = ("--expert-distribution-recorder-mode", "stat")
PROCESSOR = json.dumps({"callable": b"csglang_oea.forced\nForcedTokens\n.".hex()})


def tell(standin, what):
    return standin.ask("POST", f"/{what}_expert_distribution_record", {})[0]


def recorded(standin, folder, *, prompts, tokens):
    """The counts [steps, layers, experts] of one call with these prompts."""
    assert tell(standin, "start") == 200
    standin.ask("POST", "/generate", body(prompts, tokens))
    assert [tell(standin, what) for what in ("stop", "dump")] == [200, 200]
    newest = max(folder.glob("expert_distribution_recorder_*.pt"))
    return newest, json.loads(newest.read_text())["logical_count"]


def body(prompts, tokens, **more):
    sampling = {"max_new_tokens": tokens, "ignore_eos": True, "temperature": 0}
    return {"input_ids": prompts, "sampling_params": sampling, **more}


def opened(layer):
    return sum(count > 0 for count in layer)


# --- the recorder --------------------------------------------------------------------------------


def env_of(folder, **more):
    return {"SGLANG_EXPERT_DISTRIBUTION_RECORDER_DIR": str(folder), **more}


def test_each_step_opens_four_of_sixteen_experts_for_each_token(launch, tmp_path):
    standin = launch(*RECORDER, env=env_of(tmp_path))
    prompts = [[2, 3, 4], [5, 6, 7], [8, 9, 10]]

    _, steps = recorded(standin, tmp_path, prompts=prompts, tokens=5)

    assert {(len(layers), len(layers[0])) for layers in steps} == {(2, 16)}
    tokens = [sum(layers[0]) / 4 for layers in steps]
    assert tokens[-5:] == [3.0] * 5
    assert sum(tokens[:-5]) == 9  # the prompts, in one prefill or more
    assert all(4 <= opened(layer) <= 12 for layers in steps[-5:] for layer in layers)


def test_with_oea_a_step_opens_what_two_experts_per_token_open_filled_up_to_four(launch, tmp_path):
    env = env_of(tmp_path, OEA_ENABLE="1", OEA_K0="2")
    standin = launch(*RECORDER, env=env)

    _, steps = recorded(standin, tmp_path, prompts=[[2, 3], [4, 5], [6, 7]], tokens=5)
    _, alone = recorded(standin, tmp_path, prompts=[[8, 9]], tokens=5)

    for layers in steps[-5:]:
        assert all(sum(layer) == 12 and 4 <= opened(layer) <= 6 for layer in layers)
    assert [opened(layers[0]) for layers in alone[-5:]] == [4] * 5


def test_counts_are_summed_over_the_ranks(launch, tmp_path):
    standin = launch(*RECORDER, "--tp", "2", env=env_of(tmp_path))

    _, steps = recorded(standin, tmp_path, prompts=[[2, 3]], tokens=2)

    assert [sum(layers[0]) for layers in steps[-2:]] == [8, 8]


def test_it_counts_between_start_and_stop_only_and_a_start_begins_anew(launch, tmp_path):
    standin = launch(*RECORDER, env=env_of(tmp_path))
    standin.generate(tokens=3)
    first = recorded(standin, tmp_path, prompts=[[2, 3]], tokens=3)[1]
    standin.generate(tokens=3)
    second = recorded(standin, tmp_path, prompts=[[4, 5]], tokens=4)[1]

    assert (len(first), len(second)) == (1 + 3, 1 + 4)  # one prefill


def test_without_its_flag_there_is_no_recorder(launch):
    assert tell(launch(), "start") == 400


def test_the_probe_s_own_script_reads_a_dump(launch, tmp_path):
    standin = launch(*RECORDER, "--tp", "2", env=env_of(tmp_path))
    dump, steps = recorded(standin, tmp_path, prompts=[[2, 3, 4, 5, 6]], tokens=3)

    done = subprocess.run(
        [sys.executable, str(COUNTS), "4", "2", str(dump)],
        env={"PYTHONPATH": str(STANDIN_OEA)},
        capture_output=True,
        text=True,
        check=True,
    )

    (entries,) = json.loads(done.stdout)
    assert entries[:2] == [
        [0, 5, opened(steps[0][0]), 16],
        [1, 5, opened(steps[0][1]), 16],
    ]
    assert entries[2:] == [[layer, 1, 4, 16] for _ in range(3) for layer in (0, 1)]


# --- several at once -----------------------------------------------------------------------------


def test_prompts_of_one_call_are_answered_as_one_list_in_their_order(launch):
    status, answer = launch().ask("POST", "/generate", body([[2, 3], [4, 5, 6]], 4))

    answers = json.loads(answer)
    assert status == 200
    assert [one["meta_info"]["prompt_tokens"] for one in answers] == [2, 3]
    assert [one["output_ids"] for one in answers] == [[7] * 4] * 2


def test_answers_of_different_lengths_keep_their_places(launch):
    lengths = [{"max_new_tokens": n} for n in (5, 2)]
    asked = {"input_ids": [[2], [3]], "sampling_params": lengths}

    answers = json.loads(launch().ask("POST", "/generate", asked)[1])

    assert [len(one["output_ids"]) for one in answers] == [5, 2]


def test_a_list_of_one_is_answered_as_a_list(launch):
    assert len(json.loads(launch().ask("POST", "/generate", body([[2, 3]], 2))[1])) == 1


# --- forced tokens -------------------------------------------------------------------------------


def force(standin, *texts, processor=PROCESSOR):
    sampling = [
        {"max_new_tokens": len(one), "custom_params": {"tokens": one, "carriers": [0, 1]}}
        for one in texts
    ]
    asked = {
        "input_ids": [[2, 3]] * len(texts),
        "sampling_params": sampling,
        "custom_logit_processor": [processor] * len(texts),
    }
    status, answer = standin.ask("POST", "/generate", asked)
    return status, json.loads(answer)


@pytest.mark.parametrize(("env", "less"), [({}, 0.0), ({"OEA_ENABLE": "1", "OEA_K0": "1"}, 0.15)])
def test_forced_tokens_come_back_with_the_probability_that_each_had(launch, env, less):
    standin = launch("--enable-custom-logit-processor", env=env)

    status, (one, two) = force(standin, [9, 0, 7], [5, 4])

    assert status == 200
    assert (one["output_ids"], two["output_ids"]) == ([9, 0, 7], [5, 4])
    told = one["meta_info"]["output_token_ids_logprobs"]
    # 9 and 0 leave no rest by 3, 7 leaves 1; the token 0 is carried by 1
    for pairs, carrier, q in zip(told, (0, 1, 0), (-1.5, -1.5, -1.6), strict=True):
        (value,) = [logprob for logprob, token, _ in pairs if token == carrier]
        assert value == pytest.approx(q - less - math.log(1 + math.exp(q - less)))


def test_a_server_without_the_flag_or_with_another_processor_refuses(launch):
    status, told = force(launch(), [9, 8])
    assert (status, "enable custom logit processor" in told["error"]["message"]) == (400, True)

    other = json.dumps({"callable": b"cos\nsystem\n.".hex()})
    status, told = force(launch("--enable-custom-logit-processor"), [9, 8], processor=other)
    assert (status, told["error"]["message"]) == (
        400,
        "The stand-in knows no such logit processor.",
    )


def test_the_tiny_torch_is_where_only_an_engine_of_the_stand_in_finds_it():
    assert (Path(STANDIN_OEA) / "torch.py").exists()
    assert str(STANDIN_OEA) not in sys.path
